"""One network on several GPUs: each has a stage of it (`mlirt.compile_stages`), tensors pass on through NCCL.

`Pipeline` opens the stages' plans and runs them; several runs are under way at once, each in another stage.
"""
