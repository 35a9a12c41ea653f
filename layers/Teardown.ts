import { Cause, Exit, Runtime } from "effect"

/** For `NodeRuntime.runMain`. After SIGTERM or SIGINT the program drains and exits with code 0 instead of 130. */
export const drained: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
