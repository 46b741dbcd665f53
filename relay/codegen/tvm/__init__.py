"""All that knows TVM's own interfaces."""
