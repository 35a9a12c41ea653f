import type { Publication } from "../../src/services/Broker.ts"
import * as PublishFrames from "./PublishFrames.ts"

interface ChannelInternals {
  readonly ch: number
  /** amqplib replaces this method with one that throws as soon as the channel begins to close. */
  readonly sendMessage: unknown
  readonly connection: {
    readonly frameMax: number
    /** Likewise for the connection. */
    readonly sendMessage: unknown
    /** Writes to the socket, and resets the heartbeat timer. */
    readonly sendBytes: (bytes: Buffer) => void
    readonly stream: { readonly writableLength: number }
  }
}

/**
 * Publishes on a confirm channel, bypassing amqplib's encoder: the frames of one tick are written into one buffer and
 * sent with one write. Nothing else on the channel depends on its order relative to publishes.
 */
export class Outbox {
  readonly #channel: ChannelInternals
  readonly #open: unknown
  readonly #connectionOpen: unknown
  readonly #flush = () => this.#sendBuffered()
  #buffer = emptyBuffer
  /** The bytes from here to `#end` are not sent yet. */
  #start = 0
  #end = 0
  #lastTag = 0

  constructor(channel: object) {
    if (!hasInternals(channel))
      throw new TypeError("The internals of amqplib's channels differ from those of version 2.3: use that version")
    this.#channel = channel
    this.#open = inheritedSendMessage(channel)
    this.#connectionOpen = inheritedSendMessage(channel.connection)
  }

  /**
   * Returns the delivery tag, or `undefined` if the channel no longer accepts publishes. Throws, and sends nothing, if
   * the message was changed after its check and is no longer valid.
   */
  send(message: Omit<Publication, "purpose">): number | undefined {
    if (!this.#isOpen) return undefined
    const { ch, connection } = this.#channel
    const room = PublishFrames.maxFrameBytes(message, connection.frameMax)
    if (this.#buffer.length - this.#end < room) this.#makeRoom(room)
    const end = PublishFrames.write(this.#buffer, this.#end, ch, connection.frameMax, message)
    if (this.#start === this.#end) process.nextTick(this.#flush)
    this.#end = end
    this.#lastTag += 1
    return this.#lastTag
  }

  get #isOpen(): boolean {
    const channel = this.#channel
    return channel.sendMessage === this.#open && channel.connection.sendMessage === this.#connectionOpen
  }

  #sendBuffered(): void {
    if (this.#start === this.#end) return
    const { connection } = this.#channel
    if (this.#isOpen) connection.sendBytes(this.#buffer.subarray(this.#start, this.#end))
    if (this.#buffer.length > bufferBytes) this.#buffer = emptyBuffer
    // once everything is handed to the operating system, the buffer can be reused
    if (connection.stream.writableLength === 0 || this.#buffer === emptyBuffer) this.#end = 0
    this.#start = this.#end
  }

  #makeRoom(room: number): void {
    this.#sendBuffered()
    if (this.#buffer.length - this.#end >= room) return
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(room, bufferBytes))
    this.#start = 0
    this.#end = 0
  }
}

const emptyBuffer = Buffer.alloc(0)

const bufferBytes = 262_144

const inheritedSendMessage = (object: object): unknown =>
  Reflect.get(Reflect.getPrototypeOf(object) ?? {}, "sendMessage")

const hasInternals = (channel: object): channel is ChannelInternals => {
  if (!("ch" in channel && "sendMessage" in channel && "connection" in channel)) return false
  const { ch, connection } = channel
  if (typeof ch !== "number" || typeof connection !== "object" || connection === null) return false
  if (!("frameMax" in connection && "sendMessage" in connection)) return false
  if (!("sendBytes" in connection && "stream" in connection)) return false
  const { frameMax, sendBytes, stream } = connection
  return (
    typeof frameMax === "number" &&
    typeof sendBytes === "function" &&
    typeof stream === "object" &&
    stream !== null &&
    "writableLength" in stream
  )
}
