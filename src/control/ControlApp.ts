import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { BodyMemory } from "../http/BodyMemory.ts"
import { Readiness } from "../process/Readiness.ts"
import { RestoredCounters } from "../state/limits/RestoredCounters.ts"
import { ControlApi, PortalApi } from "./api/ControlApi.ts"
import { Audit } from "./audit/Audit.ts"
import { AuditChain } from "./audit/AuditChain.ts"
import { AuditEvents } from "./audit/AuditEvents.ts"
import { Configuration } from "./configuration/Configuration.ts"
import { PolicyImpact } from "./configuration/PolicyImpact.ts"
import { Find } from "./find/Find.ts"
import * as AuditEventsHandlers from "./handlers/AuditEvents.ts"
import * as AuthSettingsHandlers from "./handlers/AuthSettings.ts"
import * as ConfigurationHandlers from "./handlers/Configuration.ts"
import * as DebugBundlesHandlers from "./handlers/DebugBundles.ts"
import * as FindHandlers from "./handlers/Find.ts"
import * as BulkKeyChangesHandlers from "./handlers/keys/BulkKeyChanges.ts"
import * as CredentialMappingsHandlers from "./handlers/keys/CredentialMappings.ts"
import * as HeldKeysHandlers from "./handlers/keys/HeldKeys.ts"
import * as KeyGuardrailsHandlers from "./handlers/keys/KeyGuardrails.ts"
import * as KeysHandlers from "./handlers/keys/Keys.ts"
import * as ProjectsHandlers from "./handlers/keys/Projects.ts"
import * as LimitsHandlers from "./handlers/Limits.ts"
import * as LiveHandlers from "./handlers/Live.ts"
import * as OperationalHandlers from "./handlers/Operational.ts"
import * as OperatorTokensHandlers from "./handlers/OperatorTokens.ts"
import * as GuardrailsHandlers from "./handlers/policies/Guardrails.ts"
import * as PolicyHandlers from "./handlers/policies/Policy.ts"
import * as PolicyLayersHandlers from "./handlers/policies/PolicyLayers.ts"
import * as ModelPricesHandlers from "./handlers/providers/ModelPrices.ts"
import * as ProviderHealthHandlers from "./handlers/providers/ProviderHealth.ts"
import * as ProvidersHandlers from "./handlers/providers/Providers.ts"
import * as RoutesHandlers from "./handlers/providers/Routes.ts"
import * as UpstreamPassthroughHandlers from "./handlers/providers/UpstreamPassthrough.ts"
import * as UpstreamUiHandlers from "./handlers/providers/UpstreamUi.ts"
import * as SeenModelsHandlers from "./handlers/SeenModels.ts"
import * as SessionHandlers from "./handlers/Session.ts"
import * as SystemHandlers from "./handlers/System.ts"
import * as ServiceImportHandlers from "./handlers/services/ServiceImport.ts"
import * as ServiceOpenApiHandlers from "./handlers/services/ServiceOpenApi.ts"
import * as ServicesHandlers from "./handlers/services/Services.ts"
import * as StudioHandlers from "./handlers/services/Studio.ts"
import * as UsageHandlers from "./handlers/Usage.ts"
import { HeldKeys } from "./holder/HeldKeys.ts"
import { HeldSecrets } from "./holder/HeldSecrets.ts"
import { KeyTests } from "./holder/KeyTests.ts"
import { Compression } from "./http/Compression.ts"
import * as DocsPage from "./http/DocsPage.ts"
import * as Fallbacks from "./http/Fallbacks.ts"
import { hostAndRequestIdMiddleware, notFoundRoutes } from "./http/Probes.ts"
import { ReadYourWrites } from "./http/ReadYourWrites.ts"
import * as RequestDecoding from "./http/RequestDecoding.ts"
import { RequestIds } from "./http/RequestIds.ts"
import { StatementTimeout } from "./http/StatementTimeout.ts"
import { BulkKeyChanges } from "./keys/bulk/BulkKeyChanges.ts"
import { BulkKeyWorker } from "./keys/bulk/BulkKeyWorker.ts"
import { CredentialMappings } from "./keys/CredentialMappings.ts"
import * as KeyAuthentication from "./keys/KeyAuthentication.ts"
import { PresentedKeys } from "./keys/KeyAuthentication.ts"
import { KeyCredentials } from "./keys/KeyCredentials.ts"
import { KeyGuardrails } from "./keys/KeyGuardrails.ts"
import { Keys } from "./keys/Keys.ts"
import { Projects } from "./keys/Projects.ts"
import { LimitRaises } from "./limits/LimitRaises.ts"
import { LimitResets } from "./limits/LimitResets.ts"
import { LimitStates } from "./limits/LimitStates.ts"
import { RaiseRequests } from "./limits/RaiseRequests.ts"
import * as LiveConfiguration from "./live/LiveConfiguration.ts"
import * as Authentication from "./operators/Authentication.ts"
import { AuthSettings } from "./operators/AuthSettings.ts"
import { OperatorSessions } from "./operators/OperatorSessions.ts"
import { OperatorTokens } from "./operators/OperatorTokens.ts"
import { EffectivePolicies } from "./policies/EffectivePolicies.ts"
import { GuardrailBench } from "./policies/GuardrailBench.ts"
import { GuardrailCoverages } from "./policies/GuardrailCoverages.ts"
import { GuardrailExecutions } from "./policies/GuardrailExecutions.ts"
import { Guardrails } from "./policies/Guardrails.ts"
import { PolicyExplanations } from "./policies/PolicyExplanations.ts"
import { PolicyLayers } from "./policies/PolicyLayers.ts"
import { PolicySimulator } from "./policies/PolicySimulator.ts"
import * as PortalRoutes from "./portal/PortalRoutes.ts"
import { ModelPrices } from "./providers/ModelPrices.ts"
import { ProviderHealth } from "./providers/ProviderHealth.ts"
import { Providers } from "./providers/Providers.ts"
import { Routes } from "./providers/Routes.ts"
import { SeenModels } from "./providers/SeenModels.ts"
import { UpstreamPassthroughSettings } from "./providers/UpstreamPassthroughSettings.ts"
import { OpenApiSync } from "./services/OpenApiSync.ts"
import { ServiceImport } from "./services/ServiceImport.ts"
import { Services } from "./services/Services.ts"
import { Studio } from "./services/Studio.ts"
import { StudioConnection } from "./services/StudioConnection.ts"
import { Sessions } from "./session/Sessions.ts"
import { OidcSignIn } from "./sign-in/OidcSignIn.ts"
import { SignIn } from "./sign-in/SignIn.ts"
import * as StartLinkRoutes from "./sign-in/StartLinkRoutes.ts"
import { BoundedQueries } from "./store/BoundedQueries.ts"
import { ProcessDrains } from "./system/ProcessDrains.ts"
import { SystemFacts } from "./system/SystemFacts.ts"
import * as TaskOperations from "./tasks/TaskOperations.ts"
import * as UpstreamUi from "./upstream-ui/UpstreamUi.ts"
import { UpstreamUiLinks } from "./upstream-ui/UpstreamUiLinks.ts"
import * as UpstreamUiListener from "./upstream-ui/UpstreamUiListener.ts"
import { UpstreamUiSessions } from "./upstream-ui/UpstreamUiSessions.ts"
import { DebugBundles } from "./usage/DebugBundles.ts"
import { Usage } from "./usage/Usage.ts"
import { UsageEvents } from "./usage/UsageEvents.ts"
import { UsageSeries } from "./usage/UsageSeries.ts"

/** These services store the configuration. They need only the database, the secret vault and the settings. */
const configurationStores = Layer.mergeAll(
  Projects.layer,
  Keys.layer,
  Routes.layer,
  Providers.layer,
  CredentialMappings.layer,
  KeyCredentials.layer,
  ModelPrices.layer,
  Guardrails.layer,
  Services.layer,
  PolicyLayers.layer,
  UpstreamPassthroughSettings.layer,
  StudioConnection.layer,
  AuthSettings.layer
)

/** Reads and writes the configuration document. The program's commands use this layer without an HTTP listener. */
export const configuration = Configuration.layer.pipe(
  Layer.provideMerge(configurationStores),
  Layer.provide(Audit.layer)
)

const holderStores = Layer.mergeAll(HeldKeys.layer, HeldSecrets.layer, KeyTests.layer).pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      KeyGuardrails.layer,
      Usage.layer,
      UsageEvents.layer,
      UsageSeries.layer,
      LimitStates.layer,
      PolicySimulator.layer
    )
  )
)

const stores = Layer.mergeAll(
  PolicyExplanations.layer,
  EffectivePolicies.layer,
  PolicyImpact.layer,
  RaiseRequests.layer.pipe(Layer.provideMerge(LimitRaises.layer)),
  LimitResets.layer,
  BulkKeyChanges.layer.pipe(Layer.provide(BulkKeyWorker.layer)),
  OpenApiSync.layer,
  ServiceImport.layer,
  Studio.layer,
  ProviderHealth.layer,
  GuardrailExecutions.layer,
  GuardrailBench.layer,
  GuardrailCoverages.layer,
  holderStores,
  SeenModels.layer.pipe(Layer.provide([Usage.layer, UsageSeries.layer])),
  AuditEvents.layer,
  AuditChain.layer,
  DebugBundles.layer,
  Find.layer,
  SystemFacts.layer,
  ProcessDrains.layer,
  SignIn.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(OperatorTokens.layer, OperatorSessions.layer, PresentedKeys.layer, Sessions.layer)
    )
  ),
  OidcSignIn.layer,
  UpstreamUiLinks.layer.pipe(Layer.provide(UpstreamUiSessions.layer))
).pipe(Layer.provideMerge(configuration), Layer.provide([BoundedQueries.layer, RestoredCounters.layer, Audit.layer]))

const handlers = Layer.mergeAll(
  OperationalHandlers.layer,
  LiveHandlers.layer,
  OperatorTokensHandlers.ownToken,
  OperatorTokensHandlers.allTokens,
  OperatorTokensHandlers.sessions,
  ProjectsHandlers.layer,
  KeysHandlers.layer,
  BulkKeyChangesHandlers.layer,
  PolicyLayersHandlers.layer,
  PolicyHandlers.layer,
  LimitsHandlers.layer,
  RoutesHandlers.allRoutes,
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
  AuthSettingsHandlers.layer,
  GuardrailsHandlers.layer,
  KeyGuardrailsHandlers.layer,
  HeldKeysHandlers.layer,
  UsageHandlers.layer,
  SeenModelsHandlers.layer,
  SessionHandlers.layer,
  AuditEventsHandlers.layer,
  DebugBundlesHandlers.layer,
  FindHandlers.layer,
  SystemHandlers.layer,
  ConfigurationHandlers.layer
).pipe(Layer.provide([Authentication.layer, KeyAuthentication.layer, RequestDecoding.layer]))

const routes = Layer.mergeAll(
  HttpApiBuilder.layer(ControlApi).pipe(Layer.provide(handlers)),
  DocsPage.layer,
  PortalRoutes.layer,
  LiveConfiguration.layer,
  UpstreamUi.layer,
  StartLinkRoutes.layer.pipe(Layer.provide(Audit.layer)),
  Fallbacks.layer
)

/** Pages are for browsers that use a known host name. */
const pagesMiddleware = PortalRoutes.pages.pipe(Layer.provideMerge(hostAndRequestIdMiddleware))

const served = <E, R>(app: Layer.Layer<never, E, R>) =>
  app.pipe(
    Layer.provide([stores, BodyMemory.layer]),
    Layer.provide([pagesMiddleware, Compression, ReadYourWrites, StatementTimeout, Readiness.layer("not_ready")])
  )

/**
 * Serve with `HttpRouter.serve(ControlApp.layer, { routerConfig })`. The caller provides the database, Redis, the
 * upstream, the secret vault, the settings, the guardrails and the process state.
 */
export const layer = served(routes)

/** Also serves the routes of tasks, which have their own services, to operators. */
export const layerWithTasks = <E, R>(tasks: Layer.Layer<never, E, R>) =>
  served(Layer.merge(routes, TaskOperations.layer(tasks).pipe(Layer.provide(Audit.layer))))

/**
 * The routes of the separate listener for holders of keys: their pages, their view, their sessions and the probes,
 * without metrics. The caller provides `ListenerSessions.ofHolders`.
 */
export const portal = Layer.mergeAll(
  HttpApiBuilder.layer(PortalApi).pipe(
    Layer.provide([
      OperationalHandlers.probes,
      SessionHandlers.ofHolders.pipe(Layer.provide(RequestDecoding.layer)),
      Layer.merge(HeldKeysHandlers.layer, KeyGuardrailsHandlers.layer).pipe(
        Layer.provide([KeyAuthentication.layer, RequestDecoding.layer])
      )
    ])
  ),
  PortalRoutes.layer,
  notFoundRoutes
).pipe(
  Layer.provide([stores, BodyMemory.layer]),
  Layer.provide([pagesMiddleware, Compression, ReadYourWrites, StatementTimeout, Readiness.layer("not_ready")])
)

/** The routes of the separate listener that serves the upstream's web interface to browsers at `origin`. */
export const upstreamUi = (origin: string) =>
  UpstreamUiListener.layer(origin).pipe(
    Layer.provide([UpstreamUiSessions.layer, AuthSettings.layer.pipe(Layer.provide(Audit.layer))]),
    Layer.provide([BodyMemory.layer, RequestIds, StatementTimeout])
  )
