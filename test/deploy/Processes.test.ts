import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import type { Role } from "../../layers/DoorOptions.ts"
import { eventually } from "../Eventually.ts"
import * as Deployment from "../e2e/Deployment.ts"
import { root } from "../Guides.ts"
import * as LocalPort from "../LocalPort.ts"
import * as RabbitmqProcess from "../RabbitmqProcess.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as Compose from "./Compose.ts"
import { type Files, repository, withMistake } from "./Files.ts"
import * as Kubernetes from "./kubernetes/Kubernetes.ts"
import { render } from "./kubernetes/Kustomize.ts"
import * as LoadBalancer from "./LoadBalancer.ts"
import * as Monitoring from "./Monitoring.ts"

type SplitRole = Exclude<Role, "all">

/** The processes of the compose project, with its words and variables, but with servers and ports of this machine. */
class Processes extends Context.Service<Processes, ReadonlyMap<string, RunningGateway.RunningGateway>>()(
  "test/deploy/Processes"
) {
  static readonly layer = Layer.effect(
    Processes,
    Effect.gen(function* () {
      const { services } = Compose.load(repository, Compose.filledIn(repository)).project
      const deployment = yield* Deployment.make()
      const { DATABASE_URL = "", REDIS_KEY_PREFIX = "", REDIS_URL = "" } = deployment.environment
      const start = (role: SplitRole, here: Readonly<Record<string, string>>) => {
        const service = services[role === "gateway" ? "gateway-a" : role]
        const environment = {
          ...service?.environment,
          GATEWAY_DRAIN_DELAY_SECONDS: "0",
          REDIS_KEY_PREFIX,
          REDIS_URL,
          ...here
        }
        const flags = service?.command?.slice(1) ?? []
        return Effect.map(
          RunningGateway.start({ role, flags, example: false, environment }),
          (running) => [role, running] as const
        )
      }
      const [broker, ...gatewayHalf] = yield* Effect.all(
        [RabbitmqProcess.make(), start("gateway", { DATABASE_URL }), start("control", { DATABASE_URL })],
        { concurrency: 3 }
      )
      const tasks = { RABBITMQ_URL: Redacted.value(broker.url), SVC_STATUS_BIND_ADDR: "127.0.0.1:0" }
      const tasksHalf = yield* Effect.all([start("messaging", tasks), start("status", tasks), start("graph", tasks)], {
        concurrency: 3
      })
      return new Map<string, RunningGateway.RunningGateway>([...gatewayHalf, ...tasksHalf])
    })
  )
}

/** The listeners of a process, by the names of ports in the manifests. */
const origins = ({ control, proxy, status }: RunningGateway.RunningGateway): ReadonlyMap<string, string> =>
  new Map([
    ["control", control],
    ["proxy", proxy],
    ["status", status]
  ])

const statusOf = (url: string) => Effect.promise(() => fetch(url).then(({ status }) => status))
const textOf = (url: string) => Effect.promise(() => fetch(url).then((response) => response.text()))

/** What probes, load balancer and monitoring ask of the running processes, and do not get. */
const problemsOf = Effect.fnUntraced(function* (files: Files) {
  const processes = yield* Processes
  const [job] = yield* Effect.orDie(Monitoring.job(files))
  const asked = Kubernetes.deployments(render(files, Kubernetes.overlay)).flatMap((deployment) => {
    const running = processes.get(deployment.metadata.name)
    if (running === undefined) return []
    const { livenessProbe, readinessProbe, startupProbe } = Kubernetes.containerOf(deployment)
    const { annotations } = deployment.spec.template.metadata
    return [
      ...[livenessProbe, readinessProbe, startupProbe].map(({ httpGet: { path, port } }) => ({
        by: "kubelet",
        url: `${origins(running).get(port)}${path}`
      })),
      { by: "Prometheus of the cluster", url: `${running.control}${annotations["prometheus.io/path"]}` },
      { by: "Prometheus", url: `${running.control}${job?.metrics_path}` }
    ]
  })
  const balanced = { by: "HAProxy", url: `${processes.get("gateway")?.proxy}${LoadBalancer.checkedPath(files)}` }
  const problems = yield* Effect.forEach([...asked, balanced], ({ by, url }) =>
    Effect.map(statusOf(url), (status) => (status === 200 ? [] : [`${by} gets ${status} of ${new URL(url).pathname}`]))
  )
  return problems.flat()
})

/** The health check of the image, for a control listener at the address. */
const checkHealth = (address: string, ...path: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [join(root, "deploy/healthcheck.mjs"), ...path], {
    encoding: "utf8",
    env: { GATEWAY_CONTROL_BIND_ADDR: address }
  })
  return { status, said: stdout + stderr }
}

describe.skipIf(!Deployment.available || !RabbitmqProcess.available)("the processes of the compose project", () => {
  layer(Processes.layer, { excludeTestServices: true, timeout: "120 seconds" })((it) => {
    it.effect("give probes, load balancer and monitoring what they ask for", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* problemsOf(repository), [])
      })
    )

    it.effect.each([
      ["deploy/kubernetes/base/every-deployment.yaml", "/admin-ui/readyz", "/readyz", "kubelet gets 404 of /readyz"],
      [
        "deploy/kubernetes/base/every-deployment.yaml",
        "path: /admin-ui/metrics",
        "path: /metrics",
        "of the cluster gets 404"
      ],
      ["deploy/prometheus/prometheus.yaml", "/admin-ui/metrics", "/metrics", "Prometheus gets 404 of /metrics"],
      ["deploy/haproxy/haproxy.cfg", "/admin-ui/readyz", "/ready", "HAProxy gets 404 of /ready"]
    ] as const)("%s: a mistake is found: %s → %s", ([path, right, wrong, named]) =>
      Effect.gen(function* () {
        assert.include((yield* problemsOf(withMistake(path, right, wrong))).join("\n"), named)
      })
    )

    it.effect("are healthy to the image's check, and nothing else is", () =>
      Effect.gen(function* () {
        for (const [, { control }] of yield* Processes) {
          const { said, status } = checkHealth(new URL(control).host)
          assert.deepStrictEqual([status, said.slice(0, 23)], [0, '200 {"status":"ready","'])
        }
        const { control = "" } = (yield* Processes).get("gateway") ?? {}
        assert.strictEqual(checkHealth(new URL(control).host, "/admin-ui/healthz").said, '200 {"status":"ok"}\n')
        assert.strictEqual(checkHealth(new URL(control).host, "/admin-ui/nothing").status, 1)
        const silent = `127.0.0.1:${yield* LocalPort.free}`
        assert.deepStrictEqual(checkHealth(silent), {
          status: 1,
          said: `${silent} does not respond: connect ECONNREFUSED ${silent}\n`
        })
      })
    )

    it.effect("have the metrics by which they are scaled", () =>
      Effect.gen(function* () {
        const pages = yield* Effect.forEach([...(yield* Processes)], ([role, { control }]) =>
          Effect.map(
            eventually(
              textOf(`${control}/admin-ui/metrics`),
              (page) => role !== "status" || page.includes("svc.example.read.dlq")
            ),
            (page) => ({ role, page })
          )
        )
        const exporters = Kubernetes.queries(render(repository, Kubernetes.overlay)).map((query) => {
          const [metric = ""] = Kubernetes.metricsOf(query)
          return [metric, pages.filter(({ page }) => page.includes(`\n${metric}`)).map(({ role }) => role)]
        })
        assert.deepStrictEqual(exporters, [
          ["gateway_active_requests", ["gateway"]],
          ["svc_queue_messages", ["status"]]
        ])
        const queues = pages.flatMap(({ page }) => [...page.matchAll(/^svc_queue_messages\{queue="([^"]+)"\}/gm)])
        const waiting = queues.map(([, queue = ""]) => queue).filter((queue) => !/^.+[.]dlq$/.test(queue))
        assert.include(waiting, "svc.example.read")
        assert.isTrue(queues.length > waiting.length)
      })
    )

    it.effect("ask for the token on the port of statuses", () =>
      Effect.gen(function* () {
        const token = Compose.filledIn(repository)["SVC_STATUS_TOKEN"] ?? ""
        for (const role of ["status", "graph"]) {
          const url = `${(yield* Processes).get(role)?.status}/nowhere`
          assert.strictEqual(yield* statusOf(url), 401)
          const headers = { authorization: `Bearer ${token}` }
          assert.strictEqual(yield* Effect.promise(() => fetch(url, { headers }).then(({ status }) => status)), 404)
        }
      })
    )

    it.effect("end with 0 after SIGTERM", () =>
      Effect.gen(function* () {
        const processes = [...(yield* Processes)]
        for (const [, { signal }] of processes) signal("SIGTERM")
        const codes = yield* Effect.promise(() => Promise.all(processes.map(([, { exited }]) => exited)))
        assert.deepStrictEqual(codes, [0, 0, 0, 0, 0])
      })
    )
  })
})
