import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as Against from "./Against.ts"
import { type AttackName, attackNames } from "./Attacks.ts"
import { BenchFailed } from "./Child.ts"
import * as Entrants from "./Entrants.ts"
import * as Guarded from "./Guarded.ts"
import * as GuardedStreams from "./GuardedStreams.ts"
import * as Hostile from "./Hostile.ts"
import * as Inner from "./Inner.ts"
import * as Lists from "./Lists.ts"
import * as Machine from "./Machine.ts"
import * as Messaging from "./messaging/Bench.ts"
import * as Contenders from "./messaging/Contenders.ts"
import * as MessagingPlan from "./messaging/Plan.ts"
import * as Plan from "./Plan.ts"
import * as Proof from "./Proof.ts"
import * as PortalAgainst from "./portal/Against.ts"
import * as Portal from "./portal/Bench.ts"
import * as LiveRequests from "./portal/LiveRequests.ts"
import * as Report from "./Report.ts"
import * as Rounds from "./Rounds.ts"
import * as Soak from "./Soak.ts"
import * as Status from "./status/Bench.ts"
import * as Usage from "./Usage.ts"
import * as Workers from "./Workers.ts"

const say = (line: string): void => {
  process.stderr.write(`  ${line}\n`)
}

const compare = Effect.fnUntraced(function* (
  names: ReadonlyArray<Entrants.Name>,
  plan: Plan.Plan,
  nodeFlags: ReadonlyArray<string>
) {
  const upstream = yield* Entrants.upstream
  const entrants = yield* Entrants.make(names, upstream, nodeFlags)
  const measured = yield* Rounds.run(entrants, plan, say)
  const everything = entrants.find(({ name }) => name === "everything")
  const proof =
    everything?.gateway === undefined
      ? undefined
      : yield* Proof.run(everything.gateway, everything.target, plan.proofRequests)
  yield* Console.log(Report.report(measured, proof, plan, yield* Machine.describe))
})

const soak = Effect.fnUntraced(function* (minutes: number, nodeFlags: ReadonlyArray<string>) {
  const upstream = yield* Entrants.upstream
  const [entrant] = yield* Entrants.make(["everything"], upstream, nodeFlags)
  if (entrant?.gateway === undefined) return
  const soaked = yield* Soak.run(entrant, entrant.gateway, minutes)
  yield* Console.log(Report.soakReport(soaked, yield* Machine.describe))
})

const hostile = Effect.fnUntraced(function* (
  minutes: number,
  attacks: ReadonlyArray<AttackName>,
  nodeFlags: ReadonlyArray<string>
) {
  const { origin } = yield* Entrants.upstream
  const result = yield* Hostile.run(origin, minutes, attacks, nodeFlags, say)
  yield* Console.log(Report.hostileReport(result, yield* Machine.describe))
})

const guarded = Effect.fnUntraced(function* (plan: Plan.Plan, nodeFlags: ReadonlyArray<string>) {
  const { origin } = yield* Entrants.upstream
  const result = yield* GuardedStreams.run(origin, plan, nodeFlags, say)
  yield* Console.log(GuardedStreams.report(result, plan, yield* Machine.describe))
})

const workers = Effect.fnUntraced(function* (plan: Plan.Plan) {
  const upstream = yield* Entrants.upstream
  yield* Console.log(Workers.report(yield* Workers.run(upstream, plan, say), plan, yield* Machine.describe))
})

const inner = Effect.gen(function* () {
  const measured = yield* Inner.run(innerRounds)
  yield* Console.log(Report.innerReport(measured, yield* Guarded.run, yield* Machine.describe))
})
const innerRounds = 40

const usage = Effect.fnUntraced(function* (rows: number, nodeFlags: ReadonlyArray<string>) {
  yield* Console.log(Report.usageReport(yield* Usage.run(rows, nodeFlags, say), yield* Machine.describe))
})

const against = Effect.fnUntraced(function* (folder: string) {
  const { origin } = yield* Entrants.upstream
  yield* Console.log(Against.report(yield* Against.run(origin, folder, say), yield* Machine.describe))
})

const lists = Effect.gen(function* () {
  const upstream = yield* Entrants.upstream
  yield* Console.log(Lists.report(yield* Lists.run(upstream, say), yield* Machine.describe))
})

const portal = Effect.fnUntraced(function* (wanted: ReadonlyArray<Portal.Part>, usageRows: number) {
  const upstream = yield* Entrants.upstream
  yield* Console.log(Portal.report(yield* Portal.run(upstream, wanted, usageRows, say), yield* Machine.describe))
})

const portalAgainst = Effect.fnUntraced(function* (folder: string, wanted: ReadonlyArray<Portal.Part>) {
  const upstream = yield* Entrants.upstream
  const compared = yield* PortalAgainst.run(upstream, folder, wanted, say)
  yield* Console.log(PortalAgainst.report(compared, yield* Machine.describe))
})

const livePage = Effect.fnUntraced(function* (minutes: number, hurry: number) {
  const upstream = yield* Entrants.upstream
  const soaked = yield* LiveRequests.soak(upstream, { minutes, hurry }, say)
  yield* Console.log(LiveRequests.soakReport(soaked, yield* Machine.describe))
})

const chosen = <Name extends string>(only: Option.Option<string>, names: ReadonlyArray<Name>) =>
  Effect.forEach(Option.match(only, { onNone: () => names, onSome: (list) => list.split(",") }), (wish) => {
    const name = names.find((name) => name === wish)
    return name === undefined
      ? Effect.fail(new BenchFailed({ message: `--only names "${wish}": it can be ${names.join(", ")}` }))
      : Effect.succeed(name)
  })

const command = Command.make(
  "bench",
  {
    quick: Flag.Boolean("quick").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Two minutes instead of thirteen: indicative figures")
    ),
    only: Flag.String("only").pipe(
      Flag.optional,
      Flag.withDescription(
        `Some of ${Entrants.names.join(",")}, or with --messaging of ${Contenders.names.join(",")}, with --hostile of ${attackNames.join(",")}, or with --portal of ${Portal.parts.join(",")}, separated by commas`
      )
    ),
    messaging: Flag.Boolean("messaging").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Measures task messaging instead of the gateway")
    ),
    status: Flag.Boolean("status").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Measures statuses instead: the hub, event streams, requests and graphs")
    ),
    soak: Flag.Int("soak").pipe(
      Flag.optional,
      Flag.withDescription(
        "Instead: minutes of constant load with everything on, watching memory and records (or tasks, or with --portal the heap of its live page)"
      )
    ),
    hurry: Flag.Int("hurry").pipe(
      Flag.withDefault(1),
      Flag.withDescription("How many times faster the minutes of --portal --soak pass: its timers and its requests")
    ),
    hostile: Flag.Finite("hostile").pipe(
      Flag.optional,
      Flag.withDescription("Instead: minutes of a steady key beside 2,000 connections of hostile ones (10 show it)")
    ),
    guarded: Flag.Boolean("guarded").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Instead: event streams with pii-redact beside the same streams without it")
    ),
    workers: Flag.Boolean("workers").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Instead: two workers beside one process of the role gateway")
    ),
    against: Flag.String("against").pipe(
      Flag.optional,
      Flag.withDescription(
        "Instead: this gateway (or with --portal its pages) beside that of another checkout, by turns"
      )
    ),
    inner: Flag.Boolean("inner").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Instead: the gateway's own work for a request, without sockets and servers (15 seconds)")
    ),
    lists: Flag.Boolean("lists").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Instead: lists and searches among 100,000 keys and dead letters, and a million tasks")
    ),
    portal: Flag.Boolean("portal").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Instead: the portal in Chromium, before 100,000 keys and a million tasks")
    ),
    usage: Flag.Int("usage").pipe(
      Flag.optional,
      Flag.withDescription(
        "Instead: how many usage rows to make, and to ask the control API about; with --portal, how many its pages have behind them"
      )
    ),
    profile: Flag.String("profile").pipe(
      Flag.optional,
      Flag.withDescription(
        "A folder for a processor profile of the gateway with everything on, or of this messaging library"
      )
    )
  },
  Effect.fnUntraced(function* ({
    against: other,
    guarded: guardedOnly,
    hostile: hostileMinutes,
    hurry,
    inner: innerOnly,
    lists: listsOnly,
    messaging,
    only,
    portal: portalOnly,
    profile,
    quick,
    soak: minutes,
    status,
    usage: rows,
    workers: workersOnly
  }) {
    const nodeFlags = Option.match(profile, {
      onNone: () => [],
      onSome: (folder) => ["--cpu-prof", `--cpu-prof-dir=${folder}`]
    })
    if (innerOnly) return yield* inner
    if (listsOnly) return yield* lists
    if (portalOnly && Option.isSome(minutes)) return yield* livePage(minutes.value, hurry)
    if (portalOnly) {
      const wanted = yield* chosen(only, Portal.parts)
      if (Option.isSome(other)) return yield* portalAgainst(other.value, wanted)
      return yield* portal(
        wanted,
        Option.getOrElse(rows, () => 0)
      )
    }
    if (Option.isSome(other)) return yield* against(other.value)
    if (status) return yield* Status.run(quick, nodeFlags, say)
    if (messaging) {
      if (Option.isSome(minutes)) return yield* Messaging.soak(minutes.value, nodeFlags)
      const contenders = yield* chosen(only, Contenders.names)
      return yield* Messaging.compare(contenders, quick ? MessagingPlan.quick : MessagingPlan.full, nodeFlags, say)
    }
    if (Option.isSome(hostileMinutes)) {
      return yield* hostile(hostileMinutes.value, yield* chosen(only, attackNames), nodeFlags)
    }
    if (Option.isSome(rows)) return yield* usage(rows.value, nodeFlags)
    if (Option.isSome(minutes)) return yield* soak(minutes.value, nodeFlags)
    const plan = quick ? Plan.quick : Plan.full
    if (workersOnly) return yield* workers(plan)
    if (guardedOnly) return yield* guarded(plan, nodeFlags)
    yield* compare(yield* chosen(only, Entrants.names), plan, nodeFlags)
  }, Effect.scoped)
).pipe(Command.withDescription("Measures the runtime against others, on this machine, in one run"))

Command.run(command, { version: "0.1.0" }).pipe(
  Effect.tapError((error) => Console.error(error instanceof BenchFailed ? error.message : error)),
  Effect.tapDefect((defect) => Console.error(defect)),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({ disableErrorReporting: true })
)
