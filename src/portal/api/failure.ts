import { ApiError } from "./ApiError.ts"

/** The error as the server said it, or as what went wrong before it could say something. */
export const failureOf = (cause: unknown): ApiError =>
  cause instanceof ApiError ? cause : new ApiError(0, "failed", cause instanceof Error ? cause.message : String(cause))
