import { Effect } from "effect"
import { keepAliveSeconds } from "../../layers/Listeners.ts"
import { maxTimeoutMs } from "../../src/policy/routes/CanonicalRoute.ts"
import * as Compose from "./Compose.ts"
import type { Files } from "./Files.ts"
import * as Program from "./Program.ts"

export const path = "deploy/haproxy/haproxy.cfg"

/** The lines of a section, as words. */
const section = (text: string, name: string): ReadonlyArray<ReadonlyArray<string>> => {
  const [, body = ""] = new RegExp(`^${name}\\n((?: .*\\n|#.*\\n|\\n)*)`, "m").exec(text) ?? []
  return body
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([first = ""]) => first !== "" && !first.startsWith("#"))
}

const valueOf = (lines: ReadonlyArray<ReadonlyArray<string>>, ...words: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.find((line) => words.every((word, index) => line[index] === word))?.slice(words.length) ?? []

const secondsOf = (text = ""): number => Number(/^(\d+)s$/.exec(text)?.[1] ?? Number.NaN)

/** The path by which the load balancer asks a gateway whether it is ready. */
export const checkedPath = (files: Files): string =>
  /\buri (\S+)/.exec(valueOf(section(files(path), "backend gateways"), "http-check", "send").join(" "))?.[1] ?? ""

/** What is wrong with the load balancer of the compose project. */
export const problemsOf = (files: Files): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const { services } = Compose.load(files, Compose.filledIn(files)).project
    const starts = yield* Effect.forEach(
      Object.entries(services).filter(([, { command = [] }]) => command[0] === "gateway"),
      ([name, service]) => Effect.map(Compose.startOf(files, service), (start) => ({ name, start }))
    )
    const defaults = section(files(path), "defaults")
    const gateways = section(files(path), "backend gateways")
    const servers = gateways.filter(([word]) => word === "server").map(([, name, address]) => `${name} ${address}`)
    const checks = gateways.find(([word]) => word === "default-server") ?? []
    const seen = secondsOf(checks[checks.indexOf("inter") + 1]) * Number(checks[checks.indexOf("fall") + 1])
    const timeout = (name: string) => secondsOf(valueOf(defaults, "timeout", name)[0])
    return [
      ...starts
        .filter(({ name, start }) => !servers.includes(`${name} ${name}:${start.settings.proxyAddress.port}`))
        .map(({ name }) => `${name} gets no requests`),
      ...(servers.length === starts.length ? [] : ["there is a server that is no gateway"]),
      ...starts
        .filter(({ start }) => !(start.settings.drainDelaySeconds > seen + 2))
        .map(({ name }) => `${name} closes its listener before the load balancer sees that it drains`),
      ...starts
        .filter(({ start: { settings } }) => settings.connectionLimits.perAddress < settings.connectionLimits.total)
        .map(({ name }) => `${name} limits the load balancer as if it were one client`),
      ...(Program.paths.has(checkedPath(files)) ? [] : [`the gateways have no path ${checkedPath(files)}`]),
      ...(valueOf(defaults, "retry-on").join(" ") === "conn-failure" ? [] : ["a request may be sent twice"]),
      ...["client", "server"]
        .filter((name) => !(timeout(name) * 1_000 > maxTimeoutMs))
        .map((name) => `the timeout ${name} is shorter than that of routes`),
      ...(timeout("http-keep-alive") < keepAliveSeconds ? [] : ["the gateway closes idle connections first"]),
      ...frontendProblems(files(path), services["load-balancer"])
    ]
  }).pipe(Effect.match({ onFailure: (problems) => problems, onSuccess: (problems) => problems }))

const frontendProblems = (text: string, service: Compose.Service | undefined): ReadonlyArray<string> => {
  const [, port = ""] = valueOf(section(text, "frontend proxy"), "bind")[0]?.split(":") ?? []
  const [, statusPort = ""] = valueOf(section(text, "frontend status"), "bind")[0]?.split(":") ?? []
  const [monitor = ""] = valueOf(section(text, "frontend status"), "monitor-uri")
  const asked = service?.healthcheck?.test.at(-1)
  const connections = Number(valueOf(section(text, "global"), "maxconn")[0])
  return [
    ...((service?.ulimits?.nofile ?? 0) > 2 * connections + 100
      ? []
      : ["load-balancer has too few files for its connections"]),
    ...(service?.ports.some((one) => one.endsWith(`:${port}`)) === true ? [] : [`nothing leads to the port ${port}`]),
    ...(asked === `http://127.0.0.1:${statusPort}${monitor}` ? [] : [`the health check asks ${asked}`])
  ]
}
