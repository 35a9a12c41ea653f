/**
 * Flags for a process that runs PGlite for seconds: V8 compiles only the functions of WebAssembly that are called, and
 * none a second time for speed. A program with an embedded database starts with two thirds of the work.
 */
export const briefWasm: ReadonlyArray<string> = ["--wasm-lazy-compilation", "--liftoff-only"]
