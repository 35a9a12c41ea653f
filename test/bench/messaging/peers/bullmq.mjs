import { Queue, QueueEvents, Worker } from "bullmq"
import { serve } from "../Serve.ts"
import { Countdown, inFlight } from "../Tally.ts"
import { environment, prefetch, taskOf } from "../Work.ts"

/** BullMQ as its guide shows it: jobs in Redis, a worker that has a hundred in work at once. */

const url = new URL(environment.redis)
const options = {
  prefix: `${environment.prefix}bullmq`,
  connection: { host: url.hostname, port: Number(url.port || 6379), maxRetriesPerRequest: null }
}
const name = "tasks"
const queue = new Queue(name, { ...options, defaultJobOptions: { removeOnComplete: { count: 1_000 } } })
queue.setMaxListeners(0)
await queue.waitUntilReady()

const working = async (handle, use) => {
  const worker = new Worker(name, handle, { ...options, concurrency: prefetch })
  worker.on("error", () => {})
  const used = await use(worker)
  await worker.close()
  return used
}

const task = taskOf("00000000-0000-4000-8000-000000000000")

serve({
  publish: ({ ms, window }) =>
    inFlight(window, ms, (answered) => {
      queue.add("noop", task).then(
        () => answered(),
        (error) => answered(String(error))
      )
    }),

  consume: ({ messages }) =>
    working(
      async () => {},
      (worker) => {
        const countdown = new Countdown(messages)
        worker.on("completed", () => countdown.handled())
        return countdown.done
      }
    ),

  roundTrip: async ({ ms, window }) => {
    const events = new QueueEvents(name, options)
    await events.waitUntilReady()
    events.setMaxListeners(0)
    const done = await working(
      async () => {},
      () =>
        inFlight(window, ms, (answered) => {
          queue
            .add("noop", task)
            .then((job) => job.waitUntilFinished(events))
            .then(
              () => answered(),
              (error) => answered(String(error))
            )
        })
    )
    await events.close()
    return done
  },

  empty: () => queue.drain()
})
