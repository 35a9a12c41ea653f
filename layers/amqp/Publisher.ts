import type { EventEmitter } from "node:events"
import type { ConfirmChannel, Message } from "amqplib/callback_api"
import { Effect } from "effect"
import type { Outcome } from "../../src/services/Broker.ts"
import * as AmqpFailure from "./AmqpFailure.ts"
import { failsWithOffender, findOffender, refusalOf } from "./ChannelErrorAttribution.ts"
import type { Outbox } from "./Internals.ts"
import * as Messages from "./Messages.ts"
import {
  confirmed,
  deadlineExceeded,
  nacked,
  nackedMessage,
  type OutcomeCallback,
  PendingPublish,
  type PublishRequest,
  refused,
  returned,
  unknown
} from "./PendingPublish.ts"

export interface PublisherLimits {
  readonly window: number
  /** The timeout of a publish in milliseconds, including its wait to be sent. */
  readonly timeoutMs: number
}

interface Confirmation {
  readonly deliveryTag: number
  readonly multiple: boolean
}

/**
 * After a rejected publish, a channel of at least this age is replaced. The reason is a bug of RabbitMQ 3.10. After a
 * publish to a quorum queue without a leader, a channel keeps querying the dead node. It rejects every publish until
 * that node is back.
 */
const renewAfterMs = 500

/** Before a channel is replaced, it has this time to confirm its publishes. Otherwise it is not replaced. */
const renewalGraceMs = 250

/**
 * Publishes on a confirm channel, with a limit of unconfirmed publishes. Further publishes wait. The class uses
 * callbacks for speed, because every publish passes through it.
 *
 * The broker processes the publishes of a channel in order. If one of them makes it close the channel, it ignores all
 * later ones. These are sent again, unless they go to the same exchange and would fail, too. The outcome of earlier
 * unconfirmed publishes is unknown.
 */
export class Publisher<C extends EventEmitter = ConfirmChannel> {
  readonly #limits: PublisherLimits
  /** Opens a channel. Must result in a call of `attach` or `openFailed`. */
  readonly #open: () => void
  readonly #discard: ((channel: C) => void) | undefined
  #waiting: Array<PendingPublish> = []
  #head = 0
  readonly #sent = new Map<number, PendingPublish>()
  #channel: C | undefined
  #outbox: Outbox | undefined
  #openedAt = 0
  #distrustsConfirms = false
  /** True if the broker returned a message on this channel. The bug that `attach` describes is then possible. */
  #countsAhead = false
  /** Tags of confirmed publishes that a stream may have lost. These publishes are sent again on the next channel. */
  readonly #unreliableTags = new Set<number>()
  #renewal: NodeJS.Timeout | undefined
  #opening = false
  #blocked: string | undefined
  #closed: string | undefined
  #onIdle: (() => void) | undefined
  #expiryTimer: NodeJS.Timeout | undefined

  constructor(limits: PublisherLimits, open: () => void, discard?: (channel: C) => void) {
    this.#limits = limits
    this.#open = open
    this.#discard = discard
  }

  /** Calls `onOutcome` once, unless the caller calls the returned function first. */
  publish(publication: PublishRequest, onOutcome: OutcomeCallback): () => void {
    const problem = Messages.problemOf(publication)
    if (problem !== undefined) return refuse(onOutcome, "invalid", problem)
    if (this.#closed !== undefined) return refuse(onOutcome, "closed", this.#closed)
    const { timeoutMs } = this.#limits
    const pending = new PendingPublish(publication, performance.now() + timeoutMs, onOutcome)
    this.#expiryTimer ??= setTimeout(expire, timeoutMs, this)
    if (this.#canSend && this.#head === this.#waiting.length) this.#send(pending)
    else {
      this.#waiting.push(pending)
      this.wake()
    }
    return () => pending.abandon()
  }

  /**
   * `distrustsConfirms` enables a protection for streams of RabbitMQ before 4.0 (rabbitmq/rabbitmq-server#12236). A
   * message that the broker returns counts on the channel, but not in the stream. After a change of its leader, the
   * stream then takes later messages for duplicates. It confirms them without storing them.
   *
   * Messages that are confirmed after a returned one are therefore sent again on a new channel. They may be stored
   * twice. The bug remains if the counts differ because only another queue received a message.
   */
  attach(channel: C, outbox: Outbox, distrustsConfirms = false): void {
    this.#opening = false
    this.#channel = channel
    this.#distrustsConfirms = distrustsConfirms
    this.#countsAhead = false
    this.#outbox = outbox
    this.#openedAt = performance.now()
    channel.on("return", (message) => this.#returned(message))
    channel.on("ack", (ack) => this.#onConfirmation(ack, true))
    channel.on("nack", (nack) => this.#onConfirmation(nack, false))
    this.#sendWaiting()
  }

  wake(): void {
    if (this.#channel !== undefined || this.#opening || this.#head === this.#waiting.length) return
    this.#opening = true
    this.#open()
  }

  openFailed(): void {
    this.#opening = false
  }

  block(reason: string | undefined): void {
    this.#blocked = reason
    if (reason === undefined) this.#sendWaiting()
  }

  detach(why: Error): void {
    this.#channel = undefined
    this.#endRenewal()
    const sent = this.#takeSent()
    const offender = AmqpFailure.isPublishError(why) ? findOffender(sent, why) : -1
    const words = AmqpFailure.messageOf(why)
    const requeued: Array<PendingPublish> = []
    sent.forEach((pending, index) => {
      if (offender < 0 || index < offender) pending.resolve(unknown("lost", words))
      else if (index === offender || failsWithOffender(pending, sent[offender], why))
        pending.resolveNotStored(refused(refusalOf(why), words), words)
      else requeued.push(pending)
    })
    this.#requeue(requeued)
    this.#finishClose()
    this.wake()
  }

  close(detail: string): void {
    this.#closed = detail
    for (const pending of this.#waiting.slice(this.#head)) pending.resolveNotStored(refused("closed", detail), detail)
    this.#waiting = []
    this.#head = 0
    this.#finishClose()
  }

  get idle(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (this.#sent.size === 0) resume(Effect.void)
      else this.#onIdle = () => resume(Effect.void)
    })
  }

  #finishClose(): void {
    if (this.#closed === undefined || this.#sent.size > 0) return
    clearTimeout(this.#expiryTimer)
    this.#endRenewal()
    this.#onIdle?.()
  }

  get #canSend(): boolean {
    if (this.#channel === undefined || this.#renewal !== undefined) return false
    return this.#blocked === undefined && this.#sent.size < this.#limits.window
  }

  #sendWaiting(): void {
    while (this.#canSend && this.#head < this.#waiting.length) {
      const pending = this.#waiting[this.#head++]!
      if (pending.isAwaited) this.#send(pending)
    }
    if (this.#head === this.#waiting.length || this.#head > 1_024) {
      this.#waiting.splice(0, this.#head)
      this.#head = 0
    }
  }

  #send(pending: PendingPublish): void {
    try {
      const tag = this.#outbox!.send(pending.publication)
      if (tag === undefined) {
        this.#channel = undefined
        this.#waiting.splice(this.#head, 0, pending)
      } else this.#sent.set(tag, pending)
    } catch (error) {
      // Encoding failed because the caller changed the message in the meantime. Nothing was sent.
      pending.resolve(refused("invalid", AmqpFailure.messageOf(error)))
    }
  }

  #onConfirmation({ deliveryTag, multiple }: Confirmation, stored: boolean): void {
    if (multiple) {
      for (const tag of this.#sent.keys()) {
        if (tag > deliveryTag) break
        this.#resolveTag(tag, stored)
      }
    } else this.#resolveTag(deliveryTag, stored)
    if (!stored) this.#scheduleRenewal()
    if (this.#renewal !== undefined && this.#sent.size === this.#unreliableTags.size) this.#renew()
    this.#finishClose()
    if (this.#head < this.#waiting.length) this.#sendWaiting()
  }

  #resolveTag(tag: number, stored: boolean): void {
    const pending = this.#sent.get(tag)
    if (pending === undefined || this.#unreliableTags.has(tag)) return
    const { returnReason } = pending
    if (stored && returnReason === undefined && this.#distrustsConfirms && this.#countsAhead) {
      this.#unreliableTags.add(tag)
      pending.mayBeStored = true
      this.#renewal ??= setTimeout(endRenewalGrace, renewalGraceMs, this)
      return
    }
    this.#sent.delete(tag)
    if (!stored) pending.resolveNotStored(nacked, nackedMessage)
    else if (returnReason === undefined) pending.resolve(confirmed)
    else {
      // No queue received the message. The channel has counted it, but a stream has not.
      this.#countsAhead = true
      pending.resolveNotStored(returned(returnReason), returnReason)
    }
  }

  #scheduleRenewal(): void {
    if (this.#discard === undefined || this.#channel === undefined || this.#renewal !== undefined) return
    if (performance.now() - this.#openedAt > renewAfterMs)
      this.#renewal = setTimeout(endRenewalGrace, renewalGraceMs, this)
  }

  #renew(): void {
    const channel = this.#channel
    this.#channel = undefined
    this.#endRenewal()
    const sent = this.#takeSent()
    for (const pending of sent) {
      pending.mayBeStored = true
      pending.returnReason = undefined
    }
    this.#requeue(sent)
    if (channel !== undefined) {
      for (const event of ["ack", "nack", "return"]) channel.removeAllListeners(event)
      this.#discard?.(channel)
    }
    this.wake()
  }

  /** Puts publishes before all waiting ones. After `close` it refuses them. */
  #requeue(publishes: ReadonlyArray<PendingPublish>): void {
    if (this.#closed !== undefined) {
      for (const pending of publishes) pending.resolveNotStored(refused("closed", this.#closed), this.#closed)
      return
    }
    this.#waiting = [...publishes.filter(({ isAwaited }) => isAwaited), ...this.#waiting.slice(this.#head)]
    this.#head = 0
  }

  #takeSent(): Array<PendingPublish> {
    const sent = [...this.#sent.values()]
    this.#sent.clear()
    this.#unreliableTags.clear()
    return sent
  }

  #endRenewal(): void {
    clearTimeout(this.#renewal)
    this.#renewal = undefined
  }

  endRenewalGrace(): void {
    if (this.#unreliableTags.size > 0) {
      this.#renew()
      this.#finishClose()
      return
    }
    this.#endRenewal()
    this.#openedAt = performance.now()
    this.#sendWaiting()
  }

  /**
   * `basic.return` contains no delivery tag. So the publish is found by its exchange, routing key and content. If a
   * plugin of the broker changed the headers, the first publish with this exchange and routing key is taken.
   */
  #returned(message: Message): void {
    let likely: PendingPublish | undefined
    let found: PendingPublish | undefined
    for (const pending of this.#sent.values()) {
      if (pending.returnReason !== undefined) continue
      const { exchange, routingKey } = pending.publication
      if (exchange !== message.fields.exchange || routingKey !== message.fields.routingKey) continue
      likely ??= pending
      if (!Messages.isSameMessage(pending.publication, message)) continue
      found = pending
      break
    }
    const pending = found ?? likely
    if (pending !== undefined) pending.returnReason = describeReturn(message)
  }

  expire(): void {
    this.#expiryTimer = undefined
    const now = performance.now()
    let next = Number.POSITIVE_INFINITY
    let isOverdue = false
    for (const pending of this.#sent.values()) {
      if (pending.expiresAt <= now) {
        pending.resolve(deadlineExceeded(this.#limits.timeoutMs))
        isOverdue = true
      } else if (pending.isAwaited) {
        next = pending.expiresAt
        break
      }
    }
    while (this.#head < this.#waiting.length) {
      const pending = this.#waiting[this.#head]!
      if (pending.expiresAt > now) {
        next = Math.min(next, pending.expiresAt)
        break
      }
      this.#head += 1
      pending.resolve(pending.mayBeStored ? deadlineExceeded(this.#limits.timeoutMs) : this.#notSentOutcome())
    }
    if (next < Number.POSITIVE_INFINITY) this.#expiryTimer = setTimeout(expire, Math.ceil(next - now), this)
    // With the bug that `attach` describes, some publishes are never confirmed. They would block others forever.
    if (isOverdue && this.#distrustsConfirms && this.#countsAhead) {
      this.#renew()
      this.#finishClose()
    }
  }

  #notSentOutcome(): Effect.Effect<Outcome> {
    if (this.#blocked !== undefined) return refused("blocked", this.#blocked)
    const why = this.#channel === undefined ? "not connected" : "too many publishes are unconfirmed"
    return refused("unreachable", `The message was not sent within ${this.#limits.timeoutMs} ms: ${why}`)
  }
}

const expire = (publisher: { expire(): void }): void => publisher.expire()

const endRenewalGrace = (publisher: { endRenewalGrace(): void }): void => publisher.endRenewalGrace()

const refuse = (onOutcome: OutcomeCallback, reason: "invalid" | "closed", detail: string): (() => void) => {
  onOutcome(refused(reason, detail))
  return () => {}
}

const describeReturn = (message: Message): string => {
  const { exchange, routingKey } = message.fields
  const text: unknown = "replyText" in message.fields ? message.fields.replyText : "NO_ROUTE"
  return `${text}: no queue of exchange "${exchange}" takes the routing key "${routingKey}"`
}
