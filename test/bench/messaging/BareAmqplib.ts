import { type ConfirmChannel, type ConsumeMessage, connect } from "amqplib"
import { serve } from "./Serve.ts"
import { Countdown, inFlight } from "./Tally.ts"
import { environment, type Kind, placesOf, prefetch, taskOf } from "./Work.ts"

/**
 * The honest fast baseline: what a good engineer writes with amqplib who has one queue, one message, and a broker that
 * never fails. The same bytes every time, no headers, nobody who counts what is under way; an acknowledgement for each
 * message, as amqplib's own guide has it.
 */

const connection = await connect(environment.rabbitmq, { noDelay: true })
const channel = await connection.createConfirmChannel()

const declare = async (kind: Kind) => {
  const places = placesOf(environment.prefix, kind)
  await channel.assertExchange(places.exchange, "direct")
  await channel.assertQueue(places.queue, kind === "quorum" ? { arguments: { "x-queue-type": "quorum" } } : {})
  await channel.bindQueue(places.queue, places.exchange, "")
  await channel.assertExchange(places.statusExchange, "topic")
  await channel.assertQueue(places.statusQueue, { arguments: { "x-queue-type": "stream" } })
  await channel.bindQueue(places.statusQueue, places.statusExchange, "#")
  return places
}
const places = { classic: await declare("classic"), quorum: await declare("quorum") }

const content = Buffer.from(JSON.stringify(taskOf("00000000-0000-4000-8000-000000000000")))
const options = { persistent: true, contentType: "application/json" }

type Confirm = (error: Error | null) => void

const publishSame = (exchange: string, confirm: Confirm) => channel.publish(exchange, "", content, options, confirm)

/** What the contract has a task say, and how it is to be published. */
const publishAlike = (exchange: string, confirm: Confirm) => {
  const taskId = crypto.randomUUID()
  const alike = { ...options, correlationId: taskId, mandatory: true, headers: { task_id: taskId } }
  return channel.publish(exchange, "", Buffer.from(JSON.stringify(taskOf(taskId))), alike, confirm)
}

const publish = environment.alike ? publishAlike : publishSame

/** A channel with a consumer, until `use` is done. */
const consuming = async <A>(
  queue: string,
  on: (message: ConsumeMessage, channel: ConfirmChannel) => void,
  use: () => Promise<A>,
  args: object = {}
): Promise<A> => {
  const own = await connection.createConfirmChannel()
  await own.prefetch(prefetch)
  await own.consume(queue, (message) => message !== null && on(message, own), { arguments: args })
  const used = await use()
  await own.close()
  return used
}

interface Status {
  readonly task_id: string
  readonly status: string
}

const statusOf = (taskId: string, status: string): Buffer =>
  Buffer.from(
    JSON.stringify({
      task_id: taskId,
      status,
      timestamp: new Date().toISOString(),
      meta: {},
      correlation_id: taskId,
      event_id: crypto.randomUUID()
    })
  )

serve({
  publish: ({ kind, ms, window }) =>
    inFlight(window, ms, (answered) => publish(places[kind].exchange, (error) => answered(error?.message))),

  consume: ({ kind, messages }) => {
    const countdown = new Countdown(messages)
    const handle = (message: ConsumeMessage, own: ConfirmChannel) => {
      JSON.parse(message.content.toString())
      own.ack(message)
      countdown.handled()
    }
    return consuming(places[kind].queue, handle, () => countdown.done)
  },

  roundTrip: ({ ms, window }) => {
    const { exchange, queue, statusExchange, statusQueue } = places.classic
    const waiting = new Map<string, () => void>()
    const work = (message: ConsumeMessage, own: ConfirmChannel) => {
      const { task_id: taskId }: Status = JSON.parse(message.content.toString())
      channel.publish(statusExchange, taskId, statusOf(taskId, "processing"), options, () =>
        channel.publish(statusExchange, taskId, statusOf(taskId, "completed"), options, () => own.ack(message))
      )
    }
    const notice = (message: ConsumeMessage, own: ConfirmChannel) => {
      own.ack(message)
      const { status, task_id: taskId }: Status = JSON.parse(message.content.toString())
      if (status !== "completed") return
      waiting.get(taskId)?.()
      waiting.delete(taskId)
    }
    const trips = () =>
      inFlight(window, ms, (answered) => {
        const taskId = crypto.randomUUID()
        waiting.set(taskId, answered)
        channel.publish(exchange, "", Buffer.from(JSON.stringify(taskOf(taskId))), options)
      })
    return consuming(queue, work, () => consuming(statusQueue, notice, trips, { "x-stream-offset": "next" }))
  },

  empty: async ({ kind }) => {
    await channel.purgeQueue(places[kind].queue)
  }
})
