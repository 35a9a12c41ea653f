import { Effect } from "effect"
import type { Files } from "./Files.ts"
import * as Program from "./Program.ts"

export const path = "deploy/systemd/svc-runtime@.service"

/** One line of a unit. */
interface Directive {
  readonly section: string
  readonly name: string
  readonly value: string
}

export const directives = (text: string): ReadonlyArray<Directive> => {
  let section = ""
  return text.split("\n").flatMap((line) => {
    if (line === "" || line.startsWith("#")) return []
    const heading = /^\[(\w+)\]$/.exec(line)?.[1]
    if (heading !== undefined) {
      section = heading
      return []
    }
    const [, name, value = ""] = /^(\w+)=(.*)$/.exec(line) ?? []
    return name === undefined ? [{ section, name: line, value: "" }] : [{ section, name, value }]
  })
}

/** The directives of systemd that this unit may have, for machines without systemd. */
const known: Readonly<Record<string, ReadonlyArray<string>>> = {
  Unit: ["Description", "Wants", "After", "StartLimitIntervalSec"],
  Service: [
    ...[
      "Type",
      "EnvironmentFile",
      "WorkingDirectory",
      "ExecStart",
      "Restart",
      "RestartSec",
      "RestartPreventExitStatus",
      "KillSignal"
    ],
    ...["TimeoutStopSec", "DynamicUser", "StateDirectory", "StateDirectoryMode", "UMask", "LimitNOFILE"],
    ...["NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectClock"],
    ...["ProtectControlGroups", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules"],
    ...["ProtectKernelTunables", "ProtectProc", "ProcSubset", "RestrictNamespaces", "RestrictRealtime"],
    ...["RestrictSUIDSGID", "RestrictAddressFamilies", "CapabilityBoundingSet", "AmbientCapabilities"],
    ...["LockPersonality", "RemoveIPC", "SystemCallArchitectures", "SystemCallFilter", "SystemCallErrorNumber"]
  ],
  Install: ["WantedBy"]
}

const required: ReadonlyArray<readonly [name: string, value: string]> = [
  ["Restart", "on-failure"],
  ["RestartPreventExitStatus", String(Program.refusedExitCode)],
  ["KillSignal", "SIGTERM"],
  ["DynamicUser", "yes"],
  ["StateDirectory", "svc-runtime/%i"],
  ["NoNewPrivileges", "yes"],
  ["ProtectSystem", "strict"],
  ["ProtectHome", "yes"],
  ["PrivateDevices", "yes"],
  ["CapabilityBoundingSet", ""]
]

/** What is wrong with the unit. */
export const problemsOf = (files: Files): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const all = directives(files(path))
    const values = (name: string) => all.filter((one) => one.name === name).map(({ value }) => value)
    const words = (values("ExecStart")[0] ?? "").split(" ")
    const [program, role, ...options] = words
    const defaults = yield* Effect.orDie(Program.start(["all"], {}))
    const descriptors = Number(values("LimitNOFILE")[0])
    return [
      ...all
        .filter(({ name, section }) => known[section]?.includes(name) !== true)
        .map(({ name, section }) => `${name} is no directive of ${section}`),
      ...required
        .filter(([name, value]) => values(name)[0] !== value)
        .map(([name, value]) => `${name} is not ${value}: ${values(name)[0]}`),
      ...(program === `${values("WorkingDirectory")[0]}/node_modules/.bin/svc-runtime` &&
      role === "%i" &&
      options.join(" ") === "$SVC_OPTIONS"
        ? []
        : [`the unit runs ${words.join(" ")}`]),
      ...(Number(values("TimeoutStopSec")[0]) > Program.stopSeconds(defaults.settings)
        ? []
        : ["the process is killed before it has drained"]),
      ...(descriptors > 2 * defaults.settings.connectionLimits.total
        ? []
        : ["there are too few files for connections"]),
      ...(values("EnvironmentFile").includes("/etc/svc-runtime/common.env") ? [] : ["the variables come from nowhere"]),
      ...(all.some(({ name }) => name === "MemoryDenyWriteExecute") ? ["V8 could not compile"] : [])
    ]
  })
