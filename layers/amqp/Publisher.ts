import type { EventEmitter } from "node:events"
import type { ConfirmChannel, Message } from "amqplib/callback_api"
import { Effect } from "effect"
import type { Outcome } from "../../src/services/Broker.ts"
import * as AmqpFailure from "./AmqpFailure.ts"
import { failsWithOffender, findOffender, refusalOf } from "./ChannelErrorAttribution.ts"
import * as Messages from "./Messages.ts"
import { Outbox } from "./Outbox.ts"
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
  /** How many publishes may be unanswered. */
  readonly window: number
  /** Milliseconds, for the turn and the answer together. */
  readonly timeoutMs: number
}

interface Confirmation {
  readonly deliveryTag: number
  /** With all before it. */
  readonly multiple: boolean
}

/**
 * A channel on which the broker refuses a publish is replaced, at the earliest so long after it was opened. RabbitMQ
 * 3.10 needs it: a channel that first publishes to a quorum queue after its leader has died and before it has another
 * asks the dead node for its version, each time, and refuses everything until that very node is back.
 */
const renewAfterMs = 500

/** For the answers that the channel still owes; if they do not come, it stays, unless it confirms in vain. */
const renewalGraceMs = 250

/**
 * Publishes of one purpose: a window of unanswered ones on one confirm channel, and a line of those who wait for their
 * turn. Plain callbacks, as this is the hot path; what is in the line outlives the channel, and the connection.
 *
 * What is in the window when the channel ends may be stored. One thing is known: the broker handles a channel in order,
 * and nothing behind what it closed the channel for. So behind such a publish the rest goes back to the line, those to
 * the same exchange share its fate, and the outcome of those in front of it is unknown.
 */
export class Publisher<C extends EventEmitter = ConfirmChannel> {
  readonly #limits: PublisherLimits
  /** To be answered by `attach`. */
  readonly #open: () => void
  /** Takes a channel that is to be replaced; none where there is only one. */
  readonly #discard: ((channel: C) => void) | undefined
  #waiting: Array<PendingPublish> = []
  #next = 0
  /** In the order of their delivery tags, which are the channel's. */
  readonly #sent = new Map<number, PendingPublish>()
  #channel: C | undefined
  #outbox: Outbox | undefined
  #openedAt = 0
  /** A broker whose confirmations are not to be believed once the channel miscounts. */
  #doubts = false
  /** Something was returned, so that the channel has counted further than a stream behind it. */
  #miscounts = false
  /** Of what is confirmed in vain, and stays in `#sent` to be sent again on the next channel. */
  readonly #doubted = new Set<number>()
  /** While the channel is about to be replaced: nothing more is sent on it. */
  #renewal: NodeJS.Timeout | undefined
  #opening = false
  #blocked: string | undefined
  #closed: string | undefined
  #onIdle: (() => void) | undefined
  #clock: NodeJS.Timeout | undefined

  constructor(limits: PublisherLimits, open: () => void, discard?: (channel: C) => void) {
    this.#limits = limits
    this.#open = open
    this.#discard = discard
  }

  /** The answer comes once, unless the caller leaves by calling what is returned. */
  publish(publication: PublishRequest, answer: OutcomeCallback): () => void {
    const problem = Messages.problemOf(publication)
    if (problem !== undefined) return refuse(answer, "invalid", problem)
    if (this.#closed !== undefined) return refuse(answer, "closed", this.#closed)
    const { timeoutMs } = this.#limits
    const publishing = new PendingPublish(publication, performance.now() + timeoutMs, answer)
    this.#clock ??= setTimeout(expire, timeoutMs, this)
    if (this.#free && this.#next === this.#waiting.length) this.#send(publishing)
    else {
      this.#waiting.push(publishing)
      this.wake()
    }
    return () => publishing.abandon()
  }

  /**
   * `doubts`: whether the publishes may be for a stream of RabbitMQ before 4.0. When such a stream gets another leader,
   * that one is sent what the leader before had not written, by the numbers of the channel instead of the stream's own.
   * Where the channel has counted further, since the broker returned something while the stream was not there, what
   * follows is taken for duplicates: confirmed, and never written (rabbitmq/rabbitmq-server#12236). So there, what is
   * confirmed behind something that was returned is sent again, on a new channel, and may be stored twice. That the channel
   * is ahead is not seen where another queue alone has taken a publish.
   */
  attach(channel: C, distrustsConfirms = false): void {
    this.#opening = false
    this.#channel = channel
    this.#doubts = distrustsConfirms
    this.#miscounts = false
    this.#outbox = new Outbox(channel)
    this.#openedAt = performance.now()
    channel.on("return", (message) => this.#returned(message))
    // In place of amqplib's own, which look for callbacks of publishes that it knows nothing of.
    channel.removeAllListeners("ack").on("ack", (ack) => this.#answered(ack, true))
    channel.removeAllListeners("nack").on("nack", (nack) => this.#answered(nack, false))
    this.#pump()
  }

  /** Opens a channel if somebody waits for one. */
  wake(): void {
    if (this.#channel !== undefined || this.#opening || this.#next === this.#waiting.length) return
    this.#opening = true
    this.#open()
  }

  /** No channel came of `open`. */
  openFailed(): void {
    this.#opening = false
  }

  block(reason: string | undefined): void {
    this.#blocked = reason
    if (reason === undefined) this.#pump()
  }

  detach(why: Error): void {
    this.#channel = undefined
    this.#endRenewal()
    const sent = this.#takeSent()
    const offender = AmqpFailure.isPublishError(why) ? findOffender(sent, why) : -1
    const words = AmqpFailure.messageOf(why)
    const requeued: Array<PendingPublish> = []
    sent.forEach((publishing, index) => {
      if (offender < 0 || index < offender) publishing.resolve(unknown("lost", words))
      else if (index === offender || failsWithOffender(publishing, sent[offender], why))
        publishing.resolveNotStored(refused(refusalOf(why), words), words)
      else requeued.push(publishing)
    })
    this.#line(requeued)
    this.#rest()
    this.wake()
  }

  /** Nothing is taken any more, and nobody in the line gets a turn. */
  close(detail: string): void {
    this.#closed = detail
    for (const publishing of this.#waiting.slice(this.#next))
      publishing.resolveNotStored(refused("closed", detail), detail)
    this.#waiting = []
    this.#next = 0
    this.#rest()
  }

  /** Succeeds when the last answer has come. */
  get idle(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (this.#sent.size === 0) resume(Effect.void)
      else this.#onIdle = () => resume(Effect.void)
    })
  }

  #rest(): void {
    if (this.#closed === undefined || this.#sent.size > 0) return
    clearTimeout(this.#clock)
    this.#endRenewal()
    this.#onIdle?.()
  }

  get #free(): boolean {
    if (this.#channel === undefined || this.#renewal !== undefined) return false
    return this.#blocked === undefined && this.#sent.size < this.#limits.window
  }

  #pump(): void {
    while (this.#free && this.#next < this.#waiting.length) {
      const publishing = this.#waiting[this.#next++]!
      if (publishing.isAwaited) this.#send(publishing)
    }
    if (this.#next === this.#waiting.length || this.#next > 1_024) {
      this.#waiting.splice(0, this.#next)
      this.#next = 0
    }
  }

  #send(publishing: PendingPublish): void {
    try {
      const tag = this.#outbox!.send(publishing.publication)
      if (tag === undefined) {
        this.#channel = undefined
        this.#waiting.splice(this.#next, 0, publishing)
      } else this.#sent.set(tag, publishing)
    } catch (error) {
      // Its caller changed it while it waited: nothing has left.
      publishing.resolve(refused("invalid", AmqpFailure.messageOf(error)))
    }
  }

  #answered({ deliveryTag, multiple }: Confirmation, stored: boolean): void {
    if (multiple) {
      for (const tag of this.#sent.keys()) {
        if (tag > deliveryTag) break
        this.#settle(tag, stored)
      }
    } else this.#settle(deliveryTag, stored)
    if (!stored) this.#distrust()
    if (this.#renewal !== undefined && this.#sent.size === this.#doubted.size) this.#renew()
    this.#rest()
    if (this.#next < this.#waiting.length) this.#pump()
  }

  #settle(tag: number, stored: boolean): void {
    const publishing = this.#sent.get(tag)
    if (publishing === undefined || this.#doubted.has(tag)) return
    const { returnReason: whyReturned } = publishing
    if (stored && whyReturned === undefined && this.#doubts && this.#miscounts) {
      this.#doubted.add(tag)
      publishing.mayBeStored = true
      this.#renewal ??= setTimeout(endRenewalGrace, renewalGraceMs, this)
      return
    }
    this.#sent.delete(tag)
    if (!stored) publishing.resolveNotStored(nacked, nackedMessage)
    else if (whyReturned === undefined) publishing.resolve(confirmed)
    else {
      // what took it for a stream would have counted it as well
      this.#miscounts = true
      publishing.resolveNotStored(returned(whyReturned), whyReturned)
    }
  }

  #distrust(): void {
    if (this.#discard === undefined || this.#channel === undefined || this.#renewal !== undefined) return
    if (performance.now() - this.#openedAt > renewAfterMs)
      this.#renewal = setTimeout(endRenewalGrace, renewalGraceMs, this)
  }

  #renew(): void {
    const channel = this.#channel
    this.#channel = undefined
    this.#endRenewal()
    const sent = this.#takeSent()
    for (const publishing of sent) {
      publishing.mayBeStored = true
      publishing.returnReason = undefined
    }
    this.#line(sent)
    if (channel !== undefined) {
      // what it still says is of publishes that are sent again
      for (const answer of ["ack", "nack", "return"]) channel.removeAllListeners(answer)
      this.#discard?.(channel)
    }
    this.wake()
  }

  /** In front of those who wait. After the close nobody does. */
  #line(again: ReadonlyArray<PendingPublish>): void {
    if (this.#closed !== undefined) {
      for (const publishing of again) publishing.resolveNotStored(refused("closed", this.#closed), this.#closed)
      return
    }
    this.#waiting = [...again.filter(({ isAwaited }) => isAwaited), ...this.#waiting.slice(this.#next)]
    this.#next = 0
  }

  #takeSent(): Array<PendingPublish> {
    const sent = [...this.#sent.values()]
    this.#sent.clear()
    this.#doubted.clear()
    return sent
  }

  #endRenewal(): void {
    clearTimeout(this.#renewal)
    this.#renewal = undefined
  }

  /** The channel still owes answers. */
  endRenewalGrace(): void {
    if (this.#doubted.size > 0) {
      this.#renew()
      this.#rest()
      return
    }
    this.#endRenewal()
    this.#openedAt = performance.now()
    this.#pump()
  }

  /**
   * A return says nothing of which publish it answers but the message itself, and comes at some time before the
   * acknowledgement, which may be one for many. Returns come in the order of the publishes; twins are told apart by no
   * one. An interceptor of the broker may have changed the headers: then the first to this place it is.
   */
  #returned(message: Message): void {
    let likely: PendingPublish | undefined
    let found: PendingPublish | undefined
    for (const publishing of this.#sent.values()) {
      if (publishing.returnReason !== undefined) continue
      const { exchange, routingKey } = publishing.publication
      if (exchange !== message.fields.exchange || routingKey !== message.fields.routingKey) continue
      likely ??= publishing
      if (!Messages.isSameMessage(publishing.publication, message)) continue
      found = publishing
      break
    }
    const publishing = found ?? likely
    if (publishing !== undefined) publishing.returnReason = describeReturn(message)
  }

  expire(): void {
    this.#clock = undefined
    const now = performance.now()
    let next = Number.POSITIVE_INFINITY
    let isOverdue = false
    for (const publishing of this.#sent.values()) {
      if (publishing.expiresAt <= now) {
        publishing.resolve(deadlineExceeded(this.#limits.timeoutMs))
        isOverdue = true
      } else if (publishing.isAwaited) {
        next = publishing.expiresAt
        break
      }
    }
    while (this.#next < this.#waiting.length) {
      const publishing = this.#waiting[this.#next]!
      if (publishing.expiresAt > now) {
        next = Math.min(next, publishing.expiresAt)
        break
      }
      this.#next += 1
      publishing.resolve(publishing.mayBeStored ? deadlineExceeded(this.#limits.timeoutMs) : this.#turnless())
    }
    if (next < Number.POSITIVE_INFINITY) this.#clock = setTimeout(expire, Math.ceil(next - now), this)
    // a new leader confirms by the wrong numbers: some publishes are never answered, and would fill the window
    if (isOverdue && this.#doubts && this.#miscounts) {
      this.#renew()
      this.#rest()
    }
  }

  #turnless(): Effect.Effect<Outcome> {
    if (this.#blocked !== undefined) return refused("blocked", this.#blocked)
    const why = this.#channel === undefined ? "not connected" : "the window was full"
    return refused("unreachable", `It was not sent within ${this.#limits.timeoutMs} ms: ${why}`)
  }
}

const expire = (publisher: { expire(): void }): void => publisher.expire()

const endRenewalGrace = (publisher: { endRenewalGrace(): void }): void => publisher.endRenewalGrace()

const refuse = (answer: OutcomeCallback, reason: "invalid" | "closed", detail: string): (() => void) => {
  answer(refused(reason, detail))
  return () => {}
}

const describeReturn = (message: Message): string => {
  const { exchange, routingKey } = message.fields
  const text: unknown = "replyText" in message.fields ? message.fields.replyText : "NO_ROUTE"
  return `${text}: no queue of exchange "${exchange}" takes the routing key "${routingKey}"`
}
