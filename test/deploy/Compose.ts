import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Ajv } from "ajv"
import { Effect, Schema } from "effect"
import { root } from "../Guides.ts"
import { exists, type Files, variables, yaml } from "./Files.ts"
import * as Dockerfile from "./image/Dockerfile.ts"
import * as Program from "./Program.ts"

export const path = "deploy/compose.yaml"
export const examplePath = "deploy/.env.example"

const Texts = Schema.Array(Schema.String)
const NoTexts = Texts.pipe(Schema.withDecodingDefaultKey(Effect.succeed([])))

const Service = Schema.Struct({
  image: Schema.String,
  build: Schema.optionalKey(Schema.Unknown),
  command: Schema.optionalKey(Texts),
  environment: Schema.Record(Schema.String, Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed({}))),
  ports: NoTexts,
  volumes: NoTexts,
  networks: Texts.pipe(Schema.withDecodingDefaultKey(Effect.succeed(["default"]))),
  depends_on: Schema.Record(Schema.String, Schema.Struct({ condition: Schema.String })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed({}))
  ),
  restart: Schema.optionalKey(Schema.String),
  read_only: Schema.optionalKey(Schema.Boolean),
  cap_drop: Schema.optionalKey(Texts),
  security_opt: Schema.optionalKey(Texts),
  privileged: Schema.optionalKey(Schema.Boolean),
  stop_grace_period: Schema.optionalKey(Schema.String),
  ulimits: Schema.optionalKey(Schema.Struct({ nofile: Schema.Int })),
  healthcheck: Schema.optionalKey(Schema.Struct({ test: Texts }))
})
export type Service = typeof Service.Type

const Project = Schema.Struct({
  services: Schema.Record(Schema.String, Service),
  networks: Schema.Record(
    Schema.String,
    Schema.NullOr(Schema.Struct({ internal: Schema.optionalKey(Schema.Boolean) }))
  ),
  volumes: Schema.Record(Schema.String, Schema.Unknown)
})
export type Project = typeof Project.Type

const decode = Schema.decodeUnknownSync(Project)

const reference = /\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}/g

/** Replaces the variables as Compose does. A variable that is required and empty is a mistake. */
const interpolate = (value: unknown, environment: Readonly<Record<string, string>>, missing: Set<string>): unknown => {
  if (Array.isArray(value)) return value.map((one) => interpolate(one, environment, missing))
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, interpolate(one, environment, missing)])
    )
  if (typeof value !== "string") return value
  return value.replaceAll(reference, (whole, name?: string, operator?: string, rest = "") => {
    if (name === undefined) return "$"
    const set = environment[name] ?? ""
    if (set === "" && operator === "?") missing.add(name)
    return set === "" && operator === "-" ? rest : operator === undefined && set === "" ? whole : set
  })
}

/** The project with these variables in `deploy/.env`, and the names of those that it lacks. */
export const load = (files: Files, environment: Readonly<Record<string, string>>) => {
  const missing = new Set<string>()
  const project = decode(interpolate(yaml(files(path)), environment, missing))
  return { project, missing: [...missing] }
}

/** Values such as `deploy/new-env.sh` makes. */
export const filledIn = (files: Files): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(variables(files(examplePath))).map(([name, value]) => [
      name,
      value === "" && isSecret(name) && !/^UPSTREAM|PREVIOUS/.test(name) ? (madeUp[name] ?? `made-up-${name}`) : value
    ])
  )

const madeUp: Readonly<Record<string, string>> = {
  GATEWAY_ADMIN_TOKEN: `op_live_${"a".repeat(64)}`,
  GATEWAY_ENCRYPTION_KEY: Buffer.alloc(32).toString("base64")
}

const isSecret = (name: string): boolean => /(?:PASSWORD|PASS|TOKEN|KEY|SECRET)$/.test(name)

export const isOfProgram = ({ build }: Service): boolean => build !== undefined

/** The variables and words of a container of the program: those of the image first. */
export const startOf = (files: Files, { command = [], environment }: Service) =>
  Program.start(command, { ...Dockerfile.environmentOf(Dockerfile.imageOf(files)), ...environment })

const seconds = (period = "10s"): number => Number(/^(\d+)s$/.exec(period)?.[1] ?? Number.NaN)

const schema = new Ajv({ strict: false, validateSchema: false, logger: false }).compile(
  JSON.parse(readFileSync(join(root, "node_modules/docker-compose/schema/compose-spec.json"), "utf8"))
)

/** What is wrong with the project. */
export const problemsOf = (files: Files): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const parsed = yaml(files(path))
    if (!schema(parsed)) return (schema.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
    const { missing, project } = load(files, filledIn(files))
    const { services } = project
    const ofProgram = yield* Effect.forEach(Object.entries(services), ([name, service]) =>
      isOfProgram(service) ? programProblems(files, name, service, project) : Effect.succeed([])
    )
    return [
      ...missing.map((name) => `${name} is required, but ${examplePath} does not have it`),
      ...secretProblems(files),
      ...Object.entries(services).flatMap(([name, service]) => serviceProblems(name, service, project)),
      ...ofProgram.flat(),
      ...serverProblems(project)
    ]
  })

/** Passwords come from the environment, and none has a default. */
const secretProblems = (files: Files): ReadonlyArray<string> => {
  const text = files(path)
  const example = variables(files(examplePath))
  const used = [...text.matchAll(reference)].flatMap(([, name, operator, rest]) =>
    name === undefined ? [] : [{ name, operator, rest }]
  )
  const names = new Set(used.map(({ name }) => name))
  return [
    ...used
      .filter(({ name, operator, rest }) => isSecret(name) && !(operator === "?" || (operator === "-" && rest === "")))
      .map(({ name }) => `${name} has a default`),
    ...Object.entries(example)
      .filter(([name, value]) => isSecret(name) && value !== "")
      .map(([name]) => `${examplePath} has a value of ${name}`),
    ...Object.keys(example)
      .filter((name) => !names.has(name))
      .map((name) => `${examplePath} names ${name}, which the project does not use`),
    ...[...names].filter((name) => example[name] === undefined).map((name) => `${examplePath} lacks ${name}`),
    ...[...text.matchAll(/^\s+(\w+): (\S.*)$/gm)]
      .filter(([, name = "", value = ""]) => isSecret(name) && !value.startsWith("${"))
      .map(([, name]) => `${name} is written in the project`),
    ...[...text.matchAll(/:\/\/\w*:([^@\s]+)@/g)]
      .filter(([, password = ""]) => !password.startsWith("${"))
      .map(() => "a password is written in a URL")
  ]
}

const serviceProblems = (name: string, service: Service, { networks, services, volumes }: Project) => [
  ...(service.restart === "unless-stopped" ? [] : [`${name} is not restarted`]),
  ...(service.read_only === true ? [] : [`${name} can write to its image`]),
  ...(service.cap_drop?.includes("ALL") === true ? [] : [`${name} keeps capabilities`]),
  ...(service.security_opt?.includes("no-new-privileges:true") === true ? [] : [`${name} can get privileges`]),
  ...(service.privileged === true ? [`${name} is privileged`] : []),
  ...(/:v?\d+\.\d+\.?\d*/.test(service.image) ? [] : [`${name} has no version: ${service.image}`]),
  ...(isOfProgram(service) || service.healthcheck !== undefined ? [] : [`${name} has no health check`]),
  ...service.ports
    .filter((port) => !port.startsWith("127.0.0.1:"))
    .map((port) => `${name} publishes ${port} to other machines`),
  ...Object.entries(service.depends_on).flatMap(([needed, { condition }]) => [
    ...(services[needed] === undefined ? [`${name} depends on ${needed}, which does not exist`] : []),
    ...(condition === "service_healthy" ? [] : [`${name} does not wait until ${needed} is healthy`])
  ]),
  ...service.networks
    .filter((network) => network !== "default" && networks[network] === undefined)
    .map((network) => `${name} is in the network ${network}, which does not exist`),
  ...service.volumes.flatMap((volume) => {
    const [source = ""] = volume.split(":")
    if (!source.startsWith("."))
      return Object.hasOwn(volumes, source) ? [] : [`${name} has the volume ${source}, which does not exist`]
    const file = join(dirname(path), source)
    return [
      ...(exists(file) ? [] : [`${name} mounts ${file}, which does not exist`]),
      ...(volume.endsWith(":ro") ? [] : [`${name} can write to ${file}`])
    ]
  })
]

/** What the program would refuse, and what would keep the container from its servers and others from the container. */
const programProblems = (files: Files, name: string, service: Service, project: Project) =>
  Effect.match(startOf(files, service), {
    onFailure: (problems) => problems.map((problem) => `${name}: ${problem}`),
    onSuccess: (start) => [
      ...(name.startsWith(start.options.role) ? [] : [`${name} runs the role ${start.options.role}`]),
      ...(seconds(service.stop_grace_period) > Program.stopSeconds(start.settings)
        ? []
        : [`${name} is killed after ${seconds(service.stop_grace_period)} seconds, before it has drained`]),
      ...(start.options.role !== "gateway" || (service.ulimits?.nofile ?? 0) > 2 * start.settings.connectionLimits.total
        ? []
        : [`${name} has too few files for its connections`]),
      ...Program.loopbackListeners(start),
      ...service.ports
        .filter((port) => !Program.portsOf(start).includes(Number(port.split(":").at(-1))))
        .map((port) => `${name} publishes ${port}, where it does not listen`),
      ...hostsOf(service).flatMap((host) => hostProblems(name, service, host, project))
    ]
  })

const hostProblems = (name: string, { depends_on, networks }: Service, host: string, { services }: Project) => [
  ...(services[host] === undefined ? [`${name} uses ${host}, which does not exist`] : []),
  ...(depends_on[host] === undefined ? [`${name} does not wait for ${host}`] : []),
  ...(services[host]?.networks.some((network) => networks.includes(network)) === false
    ? [`${name} does not reach ${host}`]
    : [])
]

/** The hosts of the servers in the variables of a container. */
const hostsOf = ({ environment }: Service): ReadonlyArray<string> =>
  ["DATABASE_URL", "REDIS_URL", "RABBITMQ_URL"].flatMap((name) => {
    const url = environment[name]
    return url === undefined ? [] : [new URL(url).hostname]
  })

/** The servers keep what they are told, and nothing outside of the project reaches them. */
const serverProblems = ({ networks, services }: Project): ReadonlyArray<string> => {
  const redis = services["redis"]?.command?.join("\n") ?? ""
  return [
    ...["appendonly yes", "maxmemory-policy noeviction"]
      .filter((setting) => !redis.includes(setting))
      .map((setting) => `redis does not have ${setting}`),
    ...["postgres", "redis", "rabbitmq"].flatMap((name) => [
      ...((services[name]?.ports.length ?? 0) > 0 ? [`${name} publishes a port`] : []),
      ...(services[name]?.networks.some((network) => networks[network]?.internal !== true) === false
        ? []
        : [`${name} is in a network that leads outside`])
    ])
  ]
}
