// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @trip_limit_c1(%n: tensor<1xi32>) {
  // expected-error @+1 {{C1: TripLimit::kCOUNT requires a 0-D Int32 input, got tensor<1xi32>}}
  trt.trip_limit count %n {loop = @l} : tensor<1xi32>
  func.return
}

// -----

func.func @trip_limit_c2(%n: tensor<i32>) {
  // expected-error @+1 {{C2: TripLimit::kWHILE requires Bool input}}
  trt.trip_limit while %n {loop = @l} : tensor<i32>
  func.return
}

// -----

func.func @iterator_c1(%x: tensor<5x4xf32>) {
  // expected-error @+1 {{C1}}
  %e = trt.iterator %x {loop = @l, axis = 2 : i64} : (tensor<5x4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @recurrence_next_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: trt.recurrence_next must follow an IRecurrenceLayer}}
  trt.recurrence_next %x, %x : tensor<4xf32>, tensor<4xf32>
  func.return
}

// -----

func.func @recurrence_next_c2(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  %r = trt.recurrence %x {loop = @l} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{C2: the recurrence has the type tensor<4xf32>, its next value tensor<5xf32>}}
  trt.recurrence_next %r, %y : tensor<4xf32>, tensor<5xf32>
  func.return
}

// -----

func.func @loop_output_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: input of LoopOutputLayer with LoopOutput::kLAST_VALUE must be output from an IRecurrenceLayer}}
  %y = trt.loop_output last_value %x {loop = @l} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @loop_output_c2(%x: tensor<4xf32>) {
  // expected-error @+1 {{C2: trt.loop_output concatenate needs a length}}
  %y = trt.loop_output concatenate %x {loop = @l} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @loop_output_c3(%x: tensor<4xf32>, %n: tensor<i32>) {
  // expected-error @+1 {{C3: trt.loop_output has no axis 2}}
  %y = trt.loop_output reverse %x length(%n : tensor<i32>) {loop = @l, axis = 2 : i64} : (tensor<4xf32>) -> tensor<4x?xf32>
  func.return
}

// -----

func.func @loop_output_of_no_loop(%x: tensor<4xf32>) {
  // expected-error @+1 {{property 'loop' expected in operation 'trt.recurrence'}}
  %r = trt.recurrence %x {trt.other = @l} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{C1: input of LoopOutputLayer with LoopOutput::kLAST_VALUE must be output from an IRecurrenceLayer}}
  %y = trt.loop_output last_value %r {loop = @l} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
