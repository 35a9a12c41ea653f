import type { Channel, Message } from "amqplib/callback_api"
import type { Settled, Settlement } from "../../src/services/Broker.ts"

type DeliveryState = typeof open | typeof ackPending | typeof done
const open = 0
const ackPending = 1
const done = 2

const maxBatch = 50
const maxDelayMs = 5

/**
 * Settles the deliveries of one channel. Acknowledgements wait for up to 5 ms, or until 50 (or half of the prefetch)
 * are pending. One frame acknowledges all tags before the first unsettled one. Later tags are acknowledged one by one.
 */
export class Settlements {
  readonly #channel: Channel
  readonly #batchSize: number
  readonly #states: Array<DeliveryState> = []
  readonly #offsets: Array<number> = []
  #head = 0
  #firstTag = 1
  #pendingAcks: Array<number> = []
  #timer: NodeJS.Timeout | undefined
  #isInvalid = false
  #resumeAt: number | undefined

  /** A batch is at most half of `prefetch`, because the broker stops delivering at `prefetch` unsettled deliveries. */
  constructor(channel: Channel, prefetch: number) {
    this.#channel = channel
    this.#batchSize = Math.min(maxBatch, Math.ceil(prefetch / 2))
  }

  /** Must be called for every delivery, because tags are consecutive. Only streams have an `offset`. */
  track(offset = -1): void {
    this.#states.push(open)
    this.#offsets.push(offset)
  }

  settle(tag: number, how: Settlement): Settled {
    const index = tag - this.#firstTag
    if (index < this.#head || this.#states[index] !== open) return "settled"
    if (this.#isInvalid) return "stale"
    if (how === "ack") {
      this.#states[index] = ackPending
      this.#pendingAcks.push(tag)
      if (this.#pendingAcks.length >= this.#batchSize) this.flush()
      else this.#timer ??= setTimeout(() => this.flush(), maxDelayMs)
    } else {
      this.#states[index] = done
      const message = messageWithTag(tag)
      // Since RabbitMQ 4.3 only `reject` counts towards the delivery limit of a queue. `nack` does not.
      this.#send(() =>
        how === "requeue" ? this.#channel.nack(message, false, true) : this.#channel.reject(message, false)
      )
      if (index === this.#head) this.#advance()
    }
    return "requested"
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#pendingAcks.length === 0 || this.#isInvalid) return
    const firstUnfinished = this.#advance()
    for (const tag of this.#pendingAcks) {
      if (tag < firstUnfinished) continue
      this.#states[tag - this.#firstTag] = done
      this.#send(() => this.#channel.ack(messageWithTag(tag), false))
    }
    this.#pendingAcks = []
  }

  invalidate(): void {
    this.#isInvalid = true
    clearTimeout(this.#timer)
  }

  /** The stream offset from which a new consumer must read. All earlier messages are settled. */
  get resumeAt(): number | undefined {
    let index = this.#head
    while (index < this.#states.length && this.#states[index] !== open) index += 1
    const next = this.#offsets[index]
    if (next !== undefined) return next
    const last = this.#offsets[index - 1]
    return last === undefined ? this.#resumeAt : last + 1
  }

  #advance(): number {
    let index = this.#head
    let last = -1
    let count = 0
    while (index < this.#states.length && this.#states[index] !== open) {
      if (this.#states[index] === ackPending) {
        this.#states[index] = done
        last = index
        count += 1
      }
      index += 1
    }
    if (last >= 0) {
      // Use the last tag that needs an acknowledgement. The broker closes the channel if a tag is acknowledged twice.
      const tag = this.#firstTag + last
      this.#send(() => this.#channel.ack(messageWithTag(tag), count > 1))
    }
    if (index > this.#head) this.#resumeAt = (this.#offsets[index - 1] ?? -1) + 1
    this.#head = index
    this.#compact()
    return this.#firstTag + this.#head
  }

  /** Runs rarely, because `splice` moves all remaining entries. */
  #compact(): void {
    if (this.#head < 1_024 && this.#head < this.#states.length) return
    this.#states.splice(0, this.#head)
    this.#offsets.splice(0, this.#head)
    this.#firstTag += this.#head
    this.#head = 0
  }

  #send(request: () => void): void {
    try {
      request()
    } catch {
      this.invalidate()
    }
  }
}

/** amqplib requires a complete message, but reads only its delivery tag. */
const token: Message = {
  content: Buffer.alloc(0),
  fields: { deliveryTag: 0, redelivered: false, exchange: "", routingKey: "" },
  properties: {
    contentType: undefined,
    contentEncoding: undefined,
    headers: undefined,
    deliveryMode: undefined,
    priority: undefined,
    correlationId: undefined,
    replyTo: undefined,
    expiration: undefined,
    messageId: undefined,
    timestamp: undefined,
    type: undefined,
    userId: undefined,
    appId: undefined,
    clusterId: undefined
  }
}

const messageWithTag = (tag: number): Message => {
  token.fields.deliveryTag = tag
  return token
}
