import type { Result } from "effect"
import type { RawHeaders } from "../../http/Headers.ts"
import type { BodyLease, LimitOwner } from "../../services/BodyLeases.ts"
import type { TimeoutCause } from "./BodyPace.ts"

export type BodyFailure =
  | { readonly _tag: "TooLarge" }
  | { readonly _tag: "TooSlow"; readonly by: TimeoutCause }
  | { readonly _tag: "Cut" }
  /** The process, or this caller, holds too many bodies. */
  | { readonly _tag: "NoRoom"; readonly whose: LimitOwner }

/**
 * The connection to one client, as the gateway sees it. The response methods are synchronous and cheap, because all
 * bytes pass through them.
 */
export interface Wire {
  readonly method: string
  readonly target: string
  readonly headers: RawHeaders
  /** The address of the connection's peer: a proxy's, if one is in front. */
  readonly address: string
  /** One object per connection. */
  readonly connection: object

  /** Reads the complete body, up to `maxBytes`, within `withinMs` and at the minimum pace. Calls `done` once. */
  readonly readBody: (
    options: {
      readonly maxBytes: number
      readonly withinMs: number
      readonly lease: BodyLease
    },
    done: (result: Result.Result<Buffer, BodyFailure>) => void
  ) => void

  /** Streams the body. Calls `onFailure` with the reason before it throws. */
  readonly streamBody: (options: {
    readonly maxBytes: number
    /** The longest pause, unless the minimum pace is stricter. */
    readonly idleMs: number
    readonly onFailure: (failure: BodyFailure) => void
  }) => AsyncIterable<Uint8Array>

  readonly head: (status: number, headers: RawHeaders) => void
  /** Returns `false` when the client is slower than the upstream; wait for `onDrain` then. */
  readonly write: (bytes: Uint8Array) => boolean
  /** Calls `resume` once when the client has caught up. Disconnects a client that takes longer than `withinMs`. */
  readonly onDrain: (resume: () => void, withinMs: number) => void
  readonly end: (last: Uint8Array | undefined) => void
  /** Ends an incomplete response so that the client notices. */
  readonly abort: () => void
  /** Sends a complete response. Unread parts of the request are discarded, up to a limit. */
  readonly respond: (status: number, headers: RawHeaders, body: string) => void
}
