import rascal from "rascal"
import { serve } from "../Serve.ts"
import { Countdown, inFlight } from "../Tally.ts"
import { environment, placesOf, prefetch, taskOf } from "../Work.ts"

/** Rascal with its defaults for production, one publication and one subscription. */

const { exchange, queue } = placesOf(environment.prefix, "classic")
const broker = await rascal.BrokerAsPromised.create(
  rascal.withDefaultConfig({
    vhosts: {
      "/": {
        connection: { url: environment.rabbitmq },
        exchanges: { [exchange]: { type: "direct" } },
        queues: { [queue]: {} },
        bindings: { tasks: { source: exchange, destination: queue, destinationType: "queue", bindingKey: "" } },
        publications: { tasks: { vhost: "/", exchange, routingKey: "" } },
        subscriptions: { tasks: { vhost: "/", queue, prefetch } }
      }
    }
  })
)
broker.on("error", () => {})

const task = taskOf("00000000-0000-4000-8000-000000000000")

serve({
  publish: ({ ms, window }) =>
    inFlight(window, ms, (answered) => {
      broker.publish("tasks", task).then(
        (publication) =>
          publication
            .on("success", () => answered())
            .on("error", (error) => answered(String(error)))
            .on("return", () => answered("returned")),
        (error) => answered(String(error))
      )
    }),

  consume: async ({ messages }) => {
    const countdown = new Countdown(messages)
    const subscription = await broker.subscribe("tasks")
    subscription.on("message", (_message, _content, ackOrNack) => {
      ackOrNack()
      countdown.handled()
    })
    subscription.on("error", () => {})
    const done = await countdown.done
    await subscription.cancel()
    return done
  },

  empty: () => broker.purge()
})
