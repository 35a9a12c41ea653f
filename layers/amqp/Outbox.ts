import type { Publication } from "../../src/services/Broker.ts"
import * as PublishFrames from "./PublishFrames.ts"

/** What of a channel is not in amqplib's types. */
interface ChannelInternals {
  /** Its number. */
  readonly ch: number
  /** In place of its class's, one of its own, which throws, as soon as the channel begins to close. */
  readonly sendMessage: unknown
  readonly connection: {
    readonly frameMax: number
    /** Likewise, as soon as the connection begins to close. */
    readonly sendMessage: unknown
    /** Straight to the socket; and no heartbeat is due for a while. */
    readonly sendBytes: (bytes: Buffer) => void
    readonly stream: { readonly writableLength: number }
  }
}

/**
 * Publishes on a confirm channel, past amqplib's encoder and its buffers: the frames of one turn of the event loop are
 * written one behind the other into one buffer, and leave in one write. Everything else on the channel is amqplib's, and
 * nothing of it depends on the order among publishes: the channel is open by now, and once it begins to close, nothing
 * is taken here any more.
 */
export class Outbox {
  readonly #channel: ChannelInternals
  readonly #open: unknown
  readonly #connectionOpen: unknown
  readonly #flush = () => this.#leave()
  #buffer = emptyBuffer
  /** What is behind it in the buffer, and before `#end`, is yet to leave. */
  #start = 0
  #end = 0
  #tag = 0

  /** `channel`: a confirm channel of amqplib. */
  constructor(channel: object) {
    if (!hasInternals(channel)) throw new TypeError("amqplib keeps its channels in another form than 2.3")
    this.#channel = channel
    this.#open = inheritedSendMessage(channel)
    this.#connectionOpen = inheritedSendMessage(channel.connection)
  }

  /**
   * The delivery tag by which the broker will answer; none where the channel takes nothing any more. Throws, and sends
   * nothing, at a message that became unfit since it was checked.
   */
  send(message: Omit<Publication, "purpose">): number | undefined {
    if (!this.#isOpen) return undefined
    const { ch, connection } = this.#channel
    const room = PublishFrames.maxFrameBytes(message, connection.frameMax)
    if (this.#buffer.length - this.#end < room) this.#replace(room)
    const end = PublishFrames.write(this.#buffer, this.#end, ch, connection.frameMax, message)
    if (this.#start === this.#end) process.nextTick(this.#flush)
    this.#end = end
    this.#tag += 1
    return this.#tag
  }

  get #isOpen(): boolean {
    const channel = this.#channel
    return channel.sendMessage === this.#open && channel.connection.sendMessage === this.#connectionOpen
  }

  #leave(): void {
    if (this.#start === this.#end) return
    const { connection } = this.#channel
    if (this.#isOpen) connection.sendBytes(this.#buffer.subarray(this.#start, this.#end))
    if (this.#buffer.length > bufferBytes) this.#buffer = emptyBuffer
    // once the system has it all, nobody reads the buffer any more
    if (connection.stream.writableLength === 0 || this.#buffer === emptyBuffer) this.#end = 0
    this.#start = this.#end
  }

  #replace(room: number): void {
    this.#leave()
    if (this.#buffer.length - this.#end >= room) return
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(room, bufferBytes))
    this.#start = 0
    this.#end = 0
  }
}

const emptyBuffer = Buffer.alloc(0)

/** Some hundred messages of usual size. */
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
