import { Cause, Exit, Runtime } from "effect"

/**
 * A teardown for `NodeRuntime.runMain`: a program that SIGTERM or SIGINT ended exits with 0 after draining, instead of
 * 130. Every other exit is unchanged.
 */
export const drained: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
