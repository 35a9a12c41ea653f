import { Cause, Exit, Runtime } from "effect"

/** A teardown for `NodeRuntime.runMain`. After SIGTERM or SIGINT the program exits with code 0 instead of 130. */
export const drained: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
