"""The Versatile Tensor Accelerator: its instructions, its simulator, and its programs as files.

- config: Config, sizes as powers of two, and the widths and depths that follow; DEFAULT
- layout: the bits of every field, as data; the codes Opcode, Memory, AluOp
- isa: Load, Store, Gemm, Alu, Finish, MicroOp: instructions as values; no_op(queue, ..) moves tokens only
- encoding: encode, decode, encode_stream, decode_stream, encode_micro_ops, decode_micro_ops
- program: Program(config, instructions, buffers), Buffer, Role, Allocator; program.relocated({name: address})
- assembler: text(instruction), listing(program), parse_instructions(text), parse_program(text)
- simulator.run: simulate(program, {name: array}) raises StreamError with all that is wrong with the stream;
  examine(..) has it in `findings`; both give a Simulation, where result[name] is what a buffer holds;
  Simulator(program).run(inputs) does it many times, and checks once what does not depend on numbers
- simulator.findings: the rules by name (ERRORS, LINTS), Checks says which of them are looked at
- simulator.cycles: estimate(instructions, config, CycleModel()) gives a Timing without running anything: cycles,
  utilization, busy, stalls(queue), bound, gops, intensity, report()
- simulator.timeline: to_perfetto(timing, instructions), to_svg(timing)
- program_files: write_program(program, folder), read_program(folder), program_files(program) as bytes by name
- errors: ConfigurationError, EncodingError, ProgramError; assembler has AssemblyError, simulator.findings StreamError
"""
