import { Layer } from "effect"
import { HttpApiBuilder, HttpApiSwagger } from "effect/http-api"
import { Audit } from "./Audit.ts"
import { AuditEvents } from "./AuditEvents.ts"
import * as Authentication from "./Authentication.ts"
import { ControlApi, ProbesApi } from "./api/ControlApi.ts"
import { CredentialMappings } from "./CredentialMappings.ts"
import * as Fallbacks from "./Fallbacks.ts"
import { GuardrailExecutions } from "./GuardrailExecutions.ts"
import { Guardrails } from "./Guardrails.ts"
import * as AuditEventsHandlers from "./handlers/AuditEvents.ts"
import * as CredentialMappingsHandlers from "./handlers/CredentialMappings.ts"
import * as GuardrailsHandlers from "./handlers/Guardrails.ts"
import * as KeyGuardrailsHandlers from "./handlers/KeyGuardrails.ts"
import * as KeysHandlers from "./handlers/Keys.ts"
import * as ModelPricesHandlers from "./handlers/ModelPrices.ts"
import * as OperationalHandlers from "./handlers/Operational.ts"
import * as OperatorTokenHandlers from "./handlers/OperatorToken.ts"
import * as ProjectsHandlers from "./handlers/Projects.ts"
import * as ProvidersHandlers from "./handlers/Providers.ts"
import * as RoutesHandlers from "./handlers/Routes.ts"
import * as UsageHandlers from "./handlers/Usage.ts"
import * as Intake from "./Intake.ts"
import * as KeyAuthentication from "./KeyAuthentication.ts"
import { KeyGuardrails } from "./KeyGuardrails.ts"
import { Keys } from "./Keys.ts"
import { ModelPrices } from "./ModelPrices.ts"
import { OperatorTokens } from "./OperatorTokens.ts"
import { Projects } from "./Projects.ts"
import { Providers } from "./Providers.ts"
import { RequestIds } from "./RequestIds.ts"
import { Routes } from "./Routes.ts"
import { Usage } from "./Usage.ts"

/** For `HttpRouter.serve`: a path is what it says, and a percent-encoded model name is one segment of it. */
export const routerConfig = {
  caseSensitive: true,
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
  maxParamLength: 1024
} as const

const stores = Layer.mergeAll(
  OperatorTokens.layer,
  Projects.layer,
  Keys.layer,
  Routes.layer,
  Providers.layer,
  CredentialMappings.layer,
  ModelPrices.layer,
  Guardrails.layer,
  GuardrailExecutions.layer,
  KeyGuardrails.layer,
  Usage.layer,
  AuditEvents.layer
).pipe(Layer.provide(Audit.layer))

const handlers = Layer.mergeAll(
  OperationalHandlers.layer,
  OperatorTokenHandlers.layer,
  ProjectsHandlers.layer,
  KeysHandlers.layer,
  RoutesHandlers.familyA,
  RoutesHandlers.familyB,
  ProvidersHandlers.layer,
  CredentialMappingsHandlers.layer,
  ModelPricesHandlers.layer,
  GuardrailsHandlers.layer,
  KeyGuardrailsHandlers.layer,
  UsageHandlers.layer,
  AuditEventsHandlers.layer
).pipe(Layer.provide([Authentication.layer, KeyAuthentication.layer, Intake.layer]))

/**
 * The control listener's routes, for `HttpRouter.serve(ControlApp.layer, { routerConfig })`. Open are the doors, the
 * vault, the guardrails and the state of the process; the server brings the rest.
 */
export const layer = Layer.mergeAll(
  HttpApiBuilder.layer(ControlApi, { openapiPath: "/admin-ui/openapi.json" }).pipe(Layer.provide(handlers)),
  // Its page carries the whole of Swagger UI: nothing is fetched from elsewhere.
  HttpApiSwagger.layer(ControlApi, { path: "/admin-ui/docs" }),
  Fallbacks.layer
).pipe(Layer.provide(stores), Layer.provide(RequestIds))

/** For the role `gateway`, whose control listener has nothing but health, readiness and metrics. */
export const probes = Layer.mergeAll(
  HttpApiBuilder.layer(ProbesApi).pipe(Layer.provide(OperationalHandlers.probes)),
  Fallbacks.nothingElse
).pipe(Layer.provide(RequestIds))
