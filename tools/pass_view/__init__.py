"""What rt-opt --html does: the passes one by one as a page, with what each of them changed."""
