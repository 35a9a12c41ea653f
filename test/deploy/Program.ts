import { globSync } from "node:fs"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Result, Runtime } from "effect"
import { Command } from "effect/cli"
import { HttpApi } from "effect/http-api"
import { TestConsole } from "effect/testing"
import { role } from "../../layers/commands/RoleCommand.ts"
import { type CliOptions, problemsOf } from "../../layers/DoorOptions.ts"
import * as Environment from "../../layers/Environment.ts"
import { StartRefused } from "../../layers/Startup.ts"
import { ControlApi } from "../../src/control/api/ControlApi.ts"
import { shutdownSeconds } from "../../src/process/ShutdownTimeouts.ts"
import { read, root } from "../Guides.ts"

const readNames = new Set<string>()
const recording: Parameters<typeof Environment.read>[0] = new Proxy<Record<string, string | undefined>>(
  {},
  {
    get: (_, name) => {
      readNames.add(String(name))
      return undefined
    }
  }
)

const defaults = Result.getOrThrow(Environment.read(recording))

/** The variables of the roles, and that of the commands. */
export const variables: ReadonlySet<string> = new Set([...readNames, "SVC_STATUS_URL"])

/** Where the listeners are without a variable. */
export const ports = {
  proxy: defaults.proxyAddress.port,
  control: defaults.controlAddress.port,
  status: defaults.statusAddress.port
}

/** The paths of the control listener. */
export const paths: ReadonlySet<string> = new Set(
  (() => {
    const found: Array<string> = ["/admin-ui/", "/admin-ui/docs", "/admin-ui/openapi.json"]
    HttpApi.reflect(ControlApi, {
      onGroup: () => {},
      onEndpoint: ({ endpoint }) => void found.push(endpoint.path)
    })
    return found
  })()
)

/** The exit code after a mistake in the configuration. */
export const refusedExitCode = new StartRefused({ message: "" })[Runtime.errorExitCode]

/** The longest time from SIGTERM to the exit beside GATEWAY_DRAIN_DELAY_SECONDS and GATEWAY_DRAIN_SECONDS. */
const secondsAfterDrain = Object.values(shutdownSeconds).reduce((sum, seconds) => sum + seconds, 0)

/** The longest time from SIGTERM to the exit. */
export const stopSeconds = ({ drainDelaySeconds, drainSeconds }: Environment.Settings): number =>
  drainDelaySeconds + drainSeconds + secondsAfterDrain

const optionsOf = (args: ReadonlyArray<string>): Effect.Effect<CliOptions, string> =>
  Effect.suspend(() => {
    const parsed: Array<CliOptions> = []
    const command = Command.withHandler(role, (options: CliOptions) => Effect.sync(() => void parsed.push(options)))
    return Command.runWith(command, { version: "0", renderErrors: false })(args).pipe(
      Effect.provide([NodeServices.layer, TestConsole.layer]),
      Effect.mapError(() => `the program does not accept ${args.join(" ")}`),
      Effect.flatMap(() => Effect.fromNullishOr(parsed[0])),
      Effect.mapError(() => `the program does not accept ${args.join(" ")}`)
    )
  })

/** A process that would start with these words and variables. */
export interface Start {
  readonly options: CliOptions
  readonly settings: Environment.Settings
}

/** What the program would refuse, ignore or warn of. */
export const start = (
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>>
): Effect.Effect<Start, ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const options = yield* Effect.mapError(optionsOf(args), (problem) => [problem])
    const settings = yield* Effect.mapError(Effect.fromResult(Environment.read(environment)), (mistakes) =>
      mistakes.map(({ message, variable }) => `${variable} ${message}`)
    )
    const unknown = Object.keys(environment).filter((name) => !variables.has(name))
    const problems = [
      ...unknown.map((name) => `the program has no variable ${name}`),
      ...settings.unreadVariables.map(({ reason, variable }) => `${variable} has no effect: ${reason}`),
      ...problemsOf(options, settings)
    ]
    if (problems.length > 0) return yield* Effect.fail(problems)
    return { options, settings }
  })

/** The ports on which the role listens. */
export const portsOf = ({ options: { role }, settings }: Start): ReadonlyArray<number> => [
  settings.controlAddress.port,
  ...(role === "gateway" || role === "all" ? [settings.proxyAddress.port] : []),
  ...(role === "status" || role === "graph" ? [settings.statusAddress.port] : [])
]

/** The addresses that only the same container, pod or machine reaches. */
export const loopbackListeners = ({ options: { role }, settings }: Start): ReadonlyArray<string> =>
  [
    settings.controlAddress,
    ...(role === "gateway" ? [settings.proxyAddress] : []),
    ...(role === "status" || role === "graph" ? [settings.statusAddress] : [])
  ].flatMap(({ host, variable }) => (host === "0.0.0.0" ? [] : [`${variable} is ${host}, which nothing else reaches`]))

/** All code of the program. */
const sources = globSync("{src,layers}/**/*.ts", { cwd: root }).map(read).join("\n")

export const isMetric = (name: string): boolean => sources.includes(`"${name}"`)
