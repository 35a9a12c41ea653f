import { Console, Effect, FileSystem, Layer, Option, Schema } from "effect"
import { type ConfigurationPlan, Configuration as Document, Section } from "../../src/control/api/ConfigurationApi.ts"
import { ControlError } from "../../src/control/api/schema/Errors.ts"
import * as ControlApp from "../../src/control/ControlApp.ts"
import { Configuration } from "../../src/control/configuration/Configuration.ts"
import { StudioOfEnvironment } from "../../src/control/services/StudioConnection.ts"
import { StartupAuthSettings } from "../../src/policy/AuthSettings.ts"
import { StartupUpstreams } from "../../src/policy/routes/StartupUpstreams.ts"
import type { Settings } from "../Environment.ts"
import * as Installation from "../roles/Installation.ts"
import * as DatabaseCommands from "./DatabaseCommands.ts"

const DocumentJson = Schema.fromJsonString(Schema.toCodecJson(Document))

/** Errors contain the path of a wrong value, but not the value. */
const readDocument = Effect.fnUntraced(function* (file: string) {
  const text = yield* Effect.flatMap(FileSystem.FileSystem, (files) => files.readFileString(file)).pipe(
    Effect.mapError(() => new DatabaseCommands.CommandFailed({ message: `${file} cannot be read.` }))
  )
  return yield* Schema.decodeEffect(DocumentJson)(text, { onExcessProperty: "error", errors: "all" }).pipe(
    Effect.mapError(
      (error) =>
        new DatabaseCommands.CommandFailed({ message: `${file} is not a configuration document: ${error.message}` })
    )
  )
})

const withConfiguration = <A, E, R>(settings: Settings, command: string, work: Effect.Effect<A, E, R>) =>
  DatabaseCommands.withDatabase(
    settings,
    work.pipe(
      Effect.provide(ControlApp.configuration),
      Effect.provide([
        Installation.vault(settings),
        Layer.succeed(StudioOfEnvironment, settings.studio),
        Layer.succeed(StartupAuthSettings, settings.authSettings),
        Layer.succeed(StartupUpstreams, settings.upstreams),
        DatabaseCommands.commandOperator(`configuration ${command}`)
      ]),
      Effect.mapError((error) =>
        error instanceof ControlError ? new DatabaseCommands.CommandFailed({ message: error.message }) : error
      )
    )
  )

export const print = Effect.fnUntraced(function* (settings: Settings, omit: ReadonlyArray<string>) {
  const omitted = yield* Schema.decodeUnknownEffect(Schema.Array(Section))(omit).pipe(
    Effect.mapError(
      () =>
        new DatabaseCommands.CommandFailed({
          message: `--omit must be one of ${Section.literals.join(", ")}.`
        })
    )
  )
  const document = yield* withConfiguration(
    settings,
    "export",
    Effect.flatMap(Configuration, (configuration) => configuration.export(omitted))
  )
  yield* Console.log(JSON.stringify(yield* Schema.encodeEffect(Schema.toCodecJson(Document))(document), null, 2))
})

export const plan = Effect.fnUntraced(function* (settings: Settings, file: string) {
  const document = yield* readDocument(file)
  const planned = yield* withConfiguration(
    settings,
    "plan",
    Effect.flatMap(Configuration, (configuration) => configuration.plan(document))
  )
  yield* Console.log(describePlan(planned, "to change"))
})

export const apply = Effect.fnUntraced(function* (settings: Settings, file: string, base: Option.Option<string>) {
  const document = yield* readDocument(file)
  const applied = yield* withConfiguration(
    settings,
    "apply",
    Effect.gen(function* () {
      const configuration = yield* Configuration
      const against = Option.isSome(base) ? base.value : (yield* configuration.plan(document)).base_hash
      return yield* configuration.apply(document, against)
    })
  )
  yield* Console.log(describePlan(applied, "changed"))
})

const describePlan = ({ base_hash, changes }: ConfigurationPlan, what: string): string =>
  [
    ...changes.flatMap(({ action, fields, id, section, summary }) => [
      `${action} ${section} ${id}`,
      ...(summary === null
        ? fields.map(({ after, before, path }) => `  ${path}: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`)
        : [`  ${summary}`])
    ]),
    `${changes.length === 1 ? "1 object" : `${changes.length} objects`} ${what}; base ${base_hash}`
  ].join("\n")
