import { Data, Runtime } from "effect"

/** The data directory cannot be used. The program prints `message` and ends. */
export class DataRefused extends Data.TaggedError("DataRefused")<{ readonly message: string }> {
  /** The exit code `EX_CONFIG`. Another start would fail in the same way. */
  override readonly [Runtime.errorExitCode] = 78
}

/** Another process uses the directory. A start after the end of that process succeeds, so the exit code is 1. */
export class DataInUse extends Data.TaggedError("DataInUse")<{ readonly message: string }> {}

/**
 * The system does not let this process read or write the data, for example because the disk is full. A later start may
 * succeed, so the exit code is 1.
 */
export class DataUnusable extends Data.TaggedError("DataUnusable")<{ readonly message: string }> {}

export const unusable = (path: string, cause: unknown): DataUnusable =>
  new DataUnusable({
    message: `The data directory ${path} cannot be used: ${cause instanceof Error ? cause.message : String(cause)}.`
  })
