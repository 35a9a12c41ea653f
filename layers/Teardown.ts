import { Cause, Exit, Runtime } from "effect"

/**
 * For `NodeRuntime.runMain`: a program that SIGTERM or SIGINT ended, and that has drained, exits with 0 in place of 130.
 * Everything else exits as it does by default.
 */
export const drained: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
