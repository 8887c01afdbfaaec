"""The `check` dialect: tests written in the IR itself, executed by the interpreter and on every target."""

from mlirt.dialects.folder import dialect_from_folder

Check = dialect_from_folder("check", __name__, __path__)
