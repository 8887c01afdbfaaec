"""Programs with plugins: the registry, the built-in ones, and one that the program writes."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import numpy as np
import tensorrt as trt
from engine_runs import Build, Log, main, numbers, same


def registry_of_creators():
    assert trt.init_libnvinfer_plugins(Log(), "")
    registry = trt.get_plugin_registry()
    names = {creator.name for creator in registry.plugin_creator_list}
    assert "EfficientNMS_TRT" in names, names
    creator = registry.get_plugin_creator("EfficientNMS_TRT", "1", "")
    assert creator.name == "EfficientNMS_TRT" and creator.plugin_version == "1"
    assert {f.name for f in creator.field_names} >= {"score_threshold", "iou_threshold", "max_output_boxes"}
    assert registry.get_plugin_creator("no such plugin", "1", "") is None


def fields_keep_their_data():
    data = np.array([1, 2, 3], np.float32)
    field = trt.PluginField("f", data, trt.PluginFieldType.FLOAT32)
    assert field.name == "f" and field.type == trt.PluginFieldType.FLOAT32 and field.size == 3
    collection = trt.PluginFieldCollection([field])
    assert len(collection) == 1 and collection[0].name == "f"
    collection.append(trt.PluginField("g", np.array([1], np.int32), trt.PluginFieldType.INT32))
    assert [f.name for f in collection] == ["f", "g"]


def efficient_nms():
    trt.init_libnvinfer_plugins(Log(), "")
    creator = trt.get_plugin_registry().get_plugin_creator("EfficientNMS_TRT", "1", "")
    fields = trt.PluginFieldCollection(
        [
            trt.PluginField("score_threshold", np.array([0.3], np.float32), trt.PluginFieldType.FLOAT32),
            trt.PluginField("iou_threshold", np.array([0.5], np.float32), trt.PluginFieldType.FLOAT32),
            trt.PluginField("max_output_boxes", np.array([4], np.int32), trt.PluginFieldType.INT32),
            trt.PluginField("background_class", np.array([-1], np.int32), trt.PluginFieldType.INT32),
            trt.PluginField("score_activation", np.array([0], np.int32), trt.PluginFieldType.INT32),
            trt.PluginField("box_coding", np.array([0], np.int32), trt.PluginFieldType.INT32),
        ]
    )
    plugin = creator.create_plugin("nms", fields)
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]]], np.float32)
    scores = np.array([[[0.9], [0.8], [0.7]]], np.float32)
    b = Build()
    tb, ts = b.network.add_input("b", trt.float32, boxes.shape), b.network.add_input("s", trt.float32, scores.shape)
    layer = b.network.add_plugin_v2([tb, ts], plugin)
    assert layer.type == trt.LayerType.PLUGIN_V2 and layer.plugin.plugin_type == "EfficientNMS_TRT"
    count, kept, marks, classes = b.run(*[layer.get_output(i) for i in range(4)], b=boxes, s=scores)
    assert count.tolist() == [[2]] and classes[0, :2].tolist() == [0, 0]
    same(kept[0, :2], boxes[0, [0, 2]])
    same(marks[0, :2], [0.9, 0.7])


def plugin_written_in_python():
    if not hasattr(trt, "IPluginV2DynamicExt"):
        return

    class Triple(trt.IPluginV2DynamicExt):
        def __init__(self, factor):
            trt.IPluginV2DynamicExt.__init__(self)
            self.factor, self.num_outputs, self.plugin_namespace = factor, 1, ""
            self.plugin_type, self.plugin_version = "Triple", "1"

        def get_output_datatype(self, index, types):
            return types[0]

        def get_output_dimensions(self, index, inputs, builder):
            return inputs[0]

        def get_serialization_size(self):
            return 4

        def serialize(self):
            return np.float32(self.factor).tobytes()

        def supports_format_combination(self, pos, in_out, num_inputs):
            return in_out[pos].format == trt.TensorFormat.LINEAR and in_out[pos].type == trt.float32

        def configure_plugin(self, ins, outs):
            pass

        def initialize(self):
            pass

        def terminate(self):
            pass

        def destroy(self):
            pass

        def get_workspace_size(self, ins, outs):
            return 0

        def clone(self):
            return Triple(self.factor)

        def enqueue(self, ins, outs, inputs, outputs, workspace, stream):
            import ctypes

            size = int(np.prod(tuple(ins[0].dims)))
            source = np.ctypeslib.as_array(ctypes.cast(inputs[0], ctypes.POINTER(ctypes.c_float)), (size,))
            target = np.ctypeslib.as_array(ctypes.cast(outputs[0], ctypes.POINTER(ctypes.c_float)), (size,))
            target[:] = source * self.factor

    class Creator(trt.IPluginCreator):
        def __init__(self):
            trt.IPluginCreator.__init__(self)
            self.name, self.plugin_version, self.plugin_namespace = "Triple", "1", ""
            self.field_names = trt.PluginFieldCollection(
                [trt.PluginField("factor", np.array([], np.float32), trt.PluginFieldType.FLOAT32)]
            )

        def create_plugin(self, name, fields):
            return Triple(float(np.asarray(fields[0].data).reshape(-1)[0]))

        def deserialize_plugin(self, name, data):
            return Triple(float(np.frombuffer(data, np.float32)[0]))

    registry = trt.get_plugin_registry()
    assert registry.register_creator(Creator(), "")
    fields = trt.PluginFieldCollection(
        [trt.PluginField("factor", np.array([3], np.float32), trt.PluginFieldType.FLOAT32)]
    )
    plugin = registry.get_plugin_creator("Triple", "1", "").create_plugin("t", fields)
    x = numbers(2, 5)
    b = Build()
    layer = b.network.add_plugin_v2([b.network.add_input("x", trt.float32, x.shape)], plugin)
    same(b.run(layer.get_output(0), x=x), x * 3)


if __name__ == "__main__":
    main(globals())
