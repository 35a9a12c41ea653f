import type { Result } from "effect"
import type { RawHeaders } from "../../http/Headers.ts"
import type { BodyLease, LimitOwner } from "../../services/BodyLeases.ts"
import type { TimeoutCause } from "./BodyPace.ts"

export type BodyFailure =
  | { readonly _tag: "TooLarge" }
  | { readonly _tag: "TooSlow"; readonly by: TimeoutCause }
  | { readonly _tag: "Cut" }
  /** This process or this caller already holds too many bodies in memory. */
  | { readonly _tag: "NoRoom"; readonly whose: LimitOwner }

/** The connection to one client. Its methods are synchronous and cheap, because all bytes pass through them. */
export interface Wire {
  readonly method: string
  readonly target: string
  readonly headers: RawHeaders
  /** The IP address of the peer, which may be a proxy. */
  readonly address: string
  /** Identifies the connection: requests on the same connection share this object. */
  readonly connection: object

  /** Reads the complete body and calls `done` once. A body that is too large or too slow fails. */
  readonly readBody: (
    options: {
      readonly maxBytes: number
      readonly withinMs: number
      readonly lease: BodyLease
    },
    done: (result: Result.Result<Buffer, BodyFailure>) => void
  ) => void

  /** Streams the body. On a failure it calls `onFailure` with the reason and then throws. */
  readonly streamBody: (options: {
    readonly maxBytes: number
    /** The longest pause in milliseconds. The minimum pace may be stricter. */
    readonly idleMs: number
    readonly onFailure: (failure: BodyFailure) => void
  }) => AsyncIterable<Uint8Array>

  readonly head: (status: number, headers: RawHeaders) => void
  /** Returns `false` when the client reads too slowly. The caller must then wait for `onDrain`. */
  readonly write: (bytes: Uint8Array) => boolean
  /** Calls `resume` once the client has caught up. Disconnects a client that takes longer than `withinMs`. */
  readonly onDrain: (resume: () => void, withinMs: number) => void
  /** Returns `false` if the operating system has not taken the whole response yet, because the client reads slowly. */
  readonly end: (last: Uint8Array | undefined) => boolean
  /**
   * After `end` returned `false`: calls `done` once the whole response has left this process, or its connection has
   * closed. Disconnects a client that takes nothing for `withinMs`.
   */
  readonly onFlushed: (done: () => void, withinMs: number) => void
  /** Closes the connection without the end of the response, so that the client notices the failure. */
  readonly abort: () => void
  /** Sends a complete response and discards the rest of the request body, up to a limit. */
  readonly respond: (status: number, headers: RawHeaders, body: string) => void
}
