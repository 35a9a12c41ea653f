import type { EventEmitter } from "node:events"
import { Duplex } from "node:stream"
import { type ConfirmChannel, IllegalOperationError } from "amqplib/callback_api"
import type { Publication } from "../../src/services/Broker.ts"
import * as InstalledDriver from "../drivers/InstalledDriver.ts"
import * as Fields from "./Fields.ts"
import * as PublishFrames from "./PublishFrames.ts"

/** For these operations amqplib has no public API, or only a slow one. */
export interface Internals {
  readonly corkWrites: (connection: object) => void
  readonly openOutbox: (channel: ConfirmChannel) => Outbox
}

/** Sends messages on a confirm channel in order. Other requests on the channel may be sent earlier. */
export interface Outbox {
  /**
   * Returns the delivery tag, or `undefined` if the channel is closing. Throws without sending if the caller made the
   * message invalid after its validation.
   */
  readonly send: (message: Omit<Publication, "purpose">) => number | undefined
}

export const select = InstalledDriver.select<Internals>("amqplib", {
  internals: { corkWrites: (connection) => corkWrites(connection), openOutbox: (channel) => new FrameOutbox(channel) },
  publicApi: { corkWrites: () => {}, openOutbox: (channel) => openApiOutbox(channel) },
  slower: "a publish costs three times as much CPU, and each frame needs its own write"
})

/** Writes all frames of one event-loop tick together. amqplib alone makes a system call for each frame. */
const corkWrites = (connection: object): void => {
  const stream: unknown = Reflect.get(connection, "stream")
  const multiplexer: unknown = Reflect.get(connection, "muxer")
  if (!(stream instanceof Duplex) || typeof multiplexer !== "object" || multiplexer === null) return
  const write: unknown = Reflect.get(multiplexer, "_readIncoming")
  if (typeof write !== "function") return
  Reflect.set(multiplexer, "_readIncoming", () => {
    stream.cork()
    try {
      Reflect.apply(write, multiplexer, [])
    } finally {
      stream.uncork()
    }
  })
}

const openApiOutbox = (channel: ConfirmChannel): Outbox => {
  let lastTag = 0
  return {
    send: ({ content, exchange, properties: { headers, persistent, timestamp, ...properties }, routingKey }) => {
      try {
        channel.publish(exchange, routingKey, Buffer.from(content.buffer, content.byteOffset, content.byteLength), {
          ...properties,
          mandatory: true,
          persistent: persistent !== false,
          ...(headers === undefined ? {} : { headers: Fields.toWire(headers) }),
          ...(timestamp === undefined ? {} : { timestamp: Math.floor(timestamp.getTime() / 1_000) })
        })
      } catch (error) {
        if (error instanceof IllegalOperationError) return undefined
        throw error
      }
      lastTag += 1
      return lastTag
    }
  }
}

interface ChannelInternals extends EventEmitter {
  readonly ch: number
  /** amqplib replaces this method when the channel starts to close. `#isOpen` of `FrameOutbox` detects this. */
  readonly sendMessage: unknown
  readonly connection: {
    readonly frameMax: number
    readonly sendMessage: unknown
    /** Writes to the socket, and postpones the next heartbeat. */
    readonly sendBytes: (bytes: Buffer) => void
    readonly stream: { readonly writableLength: number }
  }
}

/** Encodes frames without amqplib. All frames of one event-loop tick share one buffer and one write. */
export class FrameOutbox implements Outbox {
  readonly #channel: ChannelInternals
  readonly #open: unknown
  readonly #connectionOpen: unknown
  readonly #flush = () => this.#sendBuffered()
  #buffer = emptyBuffer
  /** Bytes between `#start` and `#end` are not sent yet. */
  #start = 0
  #end = 0
  #lastTag = 0

  constructor(channel: EventEmitter) {
    if (!hasInternals(channel)) throw new TypeError("This is not a channel of a known version of amqplib")
    // amqplib's own listeners would fail, because they do not know these publishes.
    channel.removeAllListeners("ack").removeAllListeners("nack")
    this.#channel = channel
    this.#open = inheritedSendMessage(channel)
    this.#connectionOpen = inheritedSendMessage(channel.connection)
  }

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
    // The buffer can be reused when the operating system has taken all of its bytes.
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

const hasInternals = (channel: EventEmitter): channel is ChannelInternals => "ch" in channel && "connection" in channel
