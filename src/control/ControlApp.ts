import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { BodyRoom } from "../http/BodyRoom.ts"
import { Analyses } from "./Analyses.ts"
import { Audit } from "./Audit.ts"
import { AuditChain } from "./AuditChain.ts"
import { AuditEvents } from "./AuditEvents.ts"
import * as Authentication from "./Authentication.ts"
import { ControlApi, ProbesApi } from "./api/ControlApi.ts"
import { Configuration } from "./Configuration.ts"
import { CredentialMappings } from "./CredentialMappings.ts"
import { DebugBundles } from "./DebugBundles.ts"
import * as DocsPage from "./DocsPage.ts"
import * as Fallbacks from "./Fallbacks.ts"
import { FrontDoor } from "./FrontDoor.ts"
import { GuardrailExecutions } from "./GuardrailExecutions.ts"
import { Guardrails } from "./Guardrails.ts"
import * as AuditEventsHandlers from "./handlers/AuditEvents.ts"
import * as ConfigurationHandlers from "./handlers/Configuration.ts"
import * as CredentialMappingsHandlers from "./handlers/CredentialMappings.ts"
import * as DebugBundlesHandlers from "./handlers/DebugBundles.ts"
import * as FrontDoorHandlers from "./handlers/FrontDoor.ts"
import * as GuardrailsHandlers from "./handlers/Guardrails.ts"
import * as KeyGuardrailsHandlers from "./handlers/KeyGuardrails.ts"
import * as KeysHandlers from "./handlers/Keys.ts"
import * as ModelPricesHandlers from "./handlers/ModelPrices.ts"
import * as OperationalHandlers from "./handlers/Operational.ts"
import * as OperatorTokensHandlers from "./handlers/OperatorTokens.ts"
import * as PolicyHandlers from "./handlers/Policy.ts"
import * as PolicyLayersHandlers from "./handlers/PolicyLayers.ts"
import * as ProjectsHandlers from "./handlers/Projects.ts"
import * as ProviderHealthHandlers from "./handlers/ProviderHealth.ts"
import * as ProvidersHandlers from "./handlers/Providers.ts"
import * as RoutesHandlers from "./handlers/Routes.ts"
import * as ServiceImportHandlers from "./handlers/ServiceImport.ts"
import * as ServiceOpenApiHandlers from "./handlers/ServiceOpenApi.ts"
import * as ServicesHandlers from "./handlers/Services.ts"
import * as StudioHandlers from "./handlers/Studio.ts"
import * as UpstreamPassthroughHandlers from "./handlers/UpstreamPassthrough.ts"
import * as UpstreamUiHandlers from "./handlers/UpstreamUi.ts"
import * as UsageHandlers from "./handlers/Usage.ts"
import { InForce } from "./InForce.ts"
import * as Intake from "./Intake.ts"
import * as KeyAuthentication from "./KeyAuthentication.ts"
import { KeyGuardrails } from "./KeyGuardrails.ts"
import { Keys } from "./Keys.ts"
import { KnownHosts } from "./KnownHosts.ts"
import { ModelPrices } from "./ModelPrices.ts"
import { OpenApiSync } from "./OpenApiSync.ts"
import { OperatorTokens } from "./OperatorTokens.ts"
import { PolicyExplanations } from "./PolicyExplanations.ts"
import { PolicyLayers } from "./PolicyLayers.ts"
import { PolicySimulator } from "./PolicySimulator.ts"
import { Projects } from "./Projects.ts"
import { ProviderHealth } from "./ProviderHealth.ts"
import { Providers } from "./Providers.ts"
import { Readiness } from "./Readiness.ts"
import { RequestIds } from "./RequestIds.ts"
import { Routes } from "./Routes.ts"
import { ServiceImport } from "./ServiceImport.ts"
import { Services } from "./Services.ts"
import { StatementsInTime } from "./StatementsInTime.ts"
import { Studio } from "./Studio.ts"
import { StudioConnection } from "./StudioConnection.ts"
import { UpstreamPassthroughSettings } from "./UpstreamPassthroughSettings.ts"
import * as UpstreamUi from "./UpstreamUi.ts"
import { UpstreamUiLinks } from "./UpstreamUiLinks.ts"
import * as UpstreamUiListener from "./UpstreamUiListener.ts"
import { UpstreamUiSessions } from "./UpstreamUiSessions.ts"
import { Usage } from "./Usage.ts"
import { UsageEvents } from "./UsageEvents.ts"

/** For `HttpRouter.serve`: a path is what it says, and a percent-encoded model name is one segment of it. */
export const routerConfig = {
  caseSensitive: true,
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
  maxParamLength: 1024
} as const

/**
 * What the configuration document speaks of: for it the database, the vault and the environment's settings are enough.
 */
const configured = Layer.mergeAll(
  Projects.layer,
  Keys.layer,
  Routes.layer,
  Providers.layer,
  CredentialMappings.layer,
  ModelPrices.layer,
  Guardrails.layer,
  Services.layer,
  PolicyLayers.layer,
  UpstreamPassthroughSettings.layer,
  StudioConnection.layer,
  FrontDoor.layer
)

/** The configuration as one document, without a listener. */
export const configuration = Configuration.layer.pipe(Layer.provideMerge(configured), Layer.provide(Audit.layer))

const stores = Layer.mergeAll(
  OperatorTokens.layer,
  PolicySimulator.layer,
  PolicyExplanations.layer,
  OpenApiSync.layer,
  ServiceImport.layer,
  Studio.layer,
  ProviderHealth.layer,
  GuardrailExecutions.layer,
  KeyGuardrails.layer,
  Usage.layer,
  UsageEvents.layer,
  AuditEvents.layer,
  AuditChain.layer,
  DebugBundles.layer,
  UpstreamUiLinks.layer.pipe(Layer.provide(UpstreamUiSessions.layer))
).pipe(Layer.provideMerge(configuration), Layer.provide([Analyses.layer, Audit.layer]))

const handlers = Layer.mergeAll(
  OperationalHandlers.layer,
  OperatorTokensHandlers.own,
  OperatorTokensHandlers.all,
  ProjectsHandlers.layer,
  KeysHandlers.layer,
  PolicyLayersHandlers.layer,
  PolicyHandlers.layer,
  RoutesHandlers.all,
  RoutesHandlers.familyA,
  RoutesHandlers.familyB,
  ProvidersHandlers.layer,
  CredentialMappingsHandlers.layer,
  UpstreamPassthroughHandlers.layer,
  UpstreamUiHandlers.layer,
  ModelPricesHandlers.layer,
  ServiceImportHandlers.layer,
  ServiceOpenApiHandlers.layer,
  StudioHandlers.layer,
  ServicesHandlers.layer,
  ProviderHealthHandlers.layer,
  FrontDoorHandlers.layer,
  GuardrailsHandlers.layer,
  KeyGuardrailsHandlers.layer,
  UsageHandlers.layer,
  AuditEventsHandlers.layer,
  DebugBundlesHandlers.layer,
  ConfigurationHandlers.layer
).pipe(Layer.provide([Authentication.layer, KeyAuthentication.layer, Intake.layer]))

/** The router runs a middleware inside those that were added before it: a refused host has its request id, too. */
const identified = KnownHosts.pipe(Layer.provideMerge(RequestIds))

/**
 * The control listener's routes, for `HttpRouter.serve(ControlApp.layer, { routerConfig })`. Open are the doors, the
 * vault, the settings, the guardrails and the state of the process; the server brings the rest.
 */
export const layer = Layer.mergeAll(
  HttpApiBuilder.layer(ControlApi).pipe(Layer.provide(handlers)),
  DocsPage.layer,
  UpstreamUi.layer,
  Fallbacks.layer
).pipe(
  Layer.provide([stores, BodyRoom.layer]),
  Layer.provide([identified, InForce, StatementsInTime, Readiness.layer("not_ready")])
)

/** The routes of the listener that shows browsers the upstream's UI at `origin`. */
export const upstreamUi = (origin: string) =>
  UpstreamUiListener.layer(origin).pipe(
    Layer.provide([UpstreamUiSessions.layer, FrontDoor.layer.pipe(Layer.provide(Audit.layer))]),
    Layer.provide([BodyRoom.layer, RequestIds, StatementsInTime])
  )

/** For roles without the operator API, whose control listener has nothing but health, readiness and metrics. */
export const probes = Layer.mergeAll(
  HttpApiBuilder.layer(ProbesApi).pipe(Layer.provide(OperationalHandlers.probes)),
  Fallbacks.nothingElse
).pipe(Layer.provide(identified))
