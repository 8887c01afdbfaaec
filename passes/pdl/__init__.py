"""Rules of users as PDL text, the dialect in which MLIR writes patterns down."""
