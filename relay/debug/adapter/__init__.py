"""The Debug Adapter Protocol, by which editors drive the step debugger: `relay debug --dap`."""
