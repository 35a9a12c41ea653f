import type { Result } from "effect"
import type { RawHeaders } from "../../http/Headers.ts"
import type { BodyLease, LimitOwner } from "../../services/BodyLeases.ts"
import type { TimeoutCause } from "./BodyPace.ts"

/** Why a request body could not be had whole. */
export type BodyFailure =
  | { readonly _tag: "TooLarge" }
  | { readonly _tag: "TooSlow"; readonly by: TimeoutCause }
  /** The client is gone; nobody is there to answer. */
  | { readonly _tag: "Cut" }
  /** The process, or this caller, holds as many bodies as it may. */
  | { readonly _tag: "NoRoom"; readonly whose: LimitOwner }

/**
 * One client and its request, as the gateway sees them: bytes in, bytes out. Calls on the answer's side are synchronous
 * and cheap; the byte path runs through them.
 */
export interface Wire {
  readonly method: string
  /** Path and query, as they came. */
  readonly target: string
  readonly headers: RawHeaders
  /** The client's, as the connection has it: behind a proxy, the proxy's. */
  readonly address: string
  /** The same object for all requests of a connection. */
  readonly connection: object

  /** Reads the body whole, at most `maxBytes` of it, within `withinMs` and at a pace, and tells `done` once. */
  readonly readBody: (
    options: {
      readonly maxBytes: number
      readonly withinMs: number
      readonly lease: BodyLease
    },
    done: (result: Result.Result<Buffer, BodyFailure>) => void
  ) => void

  /** The body as it comes, for requests that nobody looks into. It throws after `onFailure` was told why. */
  readonly streamBody: (options: {
    readonly maxBytes: number
    /** The longest silence, where the pace that is asked of all bodies allows more. */
    readonly idleMs: number
    readonly onFailure: (failure: BodyFailure) => void
  }) => AsyncIterable<Uint8Array>

  /** Status and headers; once. */
  readonly head: (status: number, headers: RawHeaders) => void
  /** `false`: the client is slower than the upstream; wait for `onDrain`. */
  readonly write: (bytes: Uint8Array) => boolean
  /** Calls back once when the client has caught up. A client that has not within `withinMs` is cut off. */
  readonly onDrain: (resume: () => void, withinMs: number) => void
  /** The answer is whole, with these bytes as its last. */
  readonly end: (last: Uint8Array | undefined) => void
  /** The answer is not whole, and the client shall see that it is not. */
  readonly abort: () => void
  /** The complete answer at once. What is unread of the request is discarded, within bounds. */
  readonly respond: (status: number, headers: RawHeaders, body: string) => void
}
