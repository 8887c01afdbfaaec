// The network for C++: a handle that frees itself, and errors that are exceptions.
#ifndef NET_HPP
#define NET_HPP

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "net.h"

namespace net_cpp {

class Error : public std::runtime_error {
 public:
  Error(net_status status, const std::string& text) : std::runtime_error(text), status(status) {}
  net_status status;
};

class Network {
 public:
#if NET_FOR_CUDA
  explicit Network(int device = -1) {
    net_status status = net_create(&handle_, device);
#else
  explicit Network(int threads = 0) {
    net_status status = net_create(&handle_, threads);
#endif
    if (status != NET_OK) throw Error(status, net_error(nullptr));
  }
  ~Network() { net_destroy(handle_); }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  Network(Network&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Network& operator=(Network&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  void set_input_shape(int number, const std::vector<std::int64_t>& shape) {
    check(net_set_input_shape(handle_, number, shape.data(), static_cast<int>(shape.size())));
  }
  std::vector<std::int64_t> output_shape(int number) {
    std::vector<std::int64_t> shape(64);
    int rank = 0;
    check(net_output_shape(handle_, number, shape.data(), &rank));
    shape.resize(static_cast<std::size_t>(rank));
    return shape;
  }
  std::size_t output_bytes(int number) {
    std::size_t bytes = 0;
    check(net_output_bytes(handle_, number, &bytes));
    return bytes;
  }
  void run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
    check_counts(inputs, outputs);
    check(net_run(handle_, inputs.data(), outputs.data()));
  }
#if NET_FOR_CUDA
  void run_device(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
    check_counts(inputs, outputs);
    check(net_run_device(handle_, inputs.data(), outputs.data()));
  }
  void set_stream(void* stream) { check(net_set_stream(handle_, stream)); }
  void synchronize() { check(net_synchronize(handle_)); }
#endif
  const void* output_data(int number) const { return net_output_data(handle_, number); }

 private:
  void check_counts(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
    if (inputs.size() != static_cast<std::size_t>(net_input_count()) ||
        outputs.size() != static_cast<std::size_t>(net_output_count()))
      throw Error(NET_INVALID_ARGUMENT, "run needs a pointer for each input and each output");
  }
  void check(net_status status) {
    if (status != NET_OK) throw Error(status, net_error(handle_));
  }
  net_handle* handle_ = nullptr;
};

}  // namespace net_cpp

#endif
