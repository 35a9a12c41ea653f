import { HttpApi, OpenApi } from "effect/http-api"
import { AuditApi } from "./AuditApi.ts"
import { ConfigurationApi } from "./ConfigurationApi.ts"
import { CredentialMappingsApi } from "./CredentialMappingsApi.ts"
import { DebugBundlesApi } from "./DebugBundlesApi.ts"
import { FrontDoorApi } from "./FrontDoorApi.ts"
import { GuardrailsApi } from "./GuardrailsApi.ts"
import { KeyGuardrailsApi } from "./KeyGuardrailsApi.ts"
import { KeysApi } from "./KeysApi.ts"
import { ModelPricesApi } from "./ModelPricesApi.ts"
import { OperationalApi } from "./OperationalApi.ts"
import { OperatorTokenApi, OperatorTokensApi } from "./OperatorTokenApi.ts"
import { PolicyApi } from "./PolicyApi.ts"
import { PolicyLayersApi } from "./PolicyLayersApi.ts"
import { ProjectsApi } from "./ProjectsApi.ts"
import { ProviderHealthApi } from "./ProviderHealthApi.ts"
import { ProvidersApi } from "./ProvidersApi.ts"
import { FamilyARoutesApi, FamilyBRoutesApi, RoutesApi } from "./RoutesApi.ts"
import { Authorization, Intake, KeyAuthorization } from "./Security.ts"
import { ServiceImportApi } from "./ServiceImportApi.ts"
import { ServiceOpenApiApi } from "./ServiceOpenApiApi.ts"
import { ServicesApi } from "./ServicesApi.ts"
import { StudioApi } from "./StudioApi.ts"
import { UpstreamPassthroughApi } from "./UpstreamPassthroughApi.ts"
import { UpstreamUiApi } from "./UpstreamUiApi.ts"
import { UsageApi } from "./UsageApi.ts"

/** Everything that takes an operator token. A group added here is authenticated, and audited by what it calls. */
const OperatorApi = HttpApi.make("operator")
  .add(
    OperatorTokenApi,
    OperatorTokensApi,
    ProjectsApi,
    KeysApi,
    PolicyLayersApi,
    PolicyApi,
    RoutesApi,
    FamilyARoutesApi,
    FamilyBRoutesApi,
    ProvidersApi,
    CredentialMappingsApi,
    UpstreamPassthroughApi,
    UpstreamUiApi,
    ModelPricesApi,
    ServiceImportApi,
    ServiceOpenApiApi,
    StudioApi,
    ServicesApi,
    ProviderHealthApi,
    FrontDoorApi,
    GuardrailsApi,
    UsageApi,
    AuditApi,
    DebugBundlesApi,
    ConfigurationApi
  )
  // The one named last is the outermost: nothing is read before the caller is known.
  .middleware(Intake)
  .middleware(Authorization)
  // A mistake is named, not ignored; the options of answers stay as they are.
  .annotate(HttpApi.PayloadParseOptions, { onExcessProperty: "error", errors: "all" })
  .annotate(HttpApi.QueryParseOptions, { onExcessProperty: "error", errors: "all" })
  .prefix("/admin")

/** What takes a gateway key: nothing here changes anything. */
const KeyApi = HttpApi.make("key")
  .add(KeyGuardrailsApi)
  .middleware(Intake)
  .middleware(KeyAuthorization)
  .annotate(HttpApi.PayloadParseOptions, { onExcessProperty: "error", errors: "all" })
  .annotate(HttpApi.QueryParseOptions, { onExcessProperty: "error", errors: "all" })
  .prefix("/v1")

/**
 * The operator API: one definition for the server, the OpenAPI document and typed clients. Nothing here needs Node, so
 * a browser can import it.
 */
export const ControlApi = HttpApi.make("control")
  .add(OperationalApi)
  .addHttpApi(OperatorApi)
  .addHttpApi(KeyApi)
  .prefix("/admin-ui")
  .annotateMerge(
    OpenApi.annotations({
      title: "svc-runtime control API",
      version: "0.1.0",
      description:
        "Operators decide here who may use the gateway, for what and with which credentials. Authenticate with " +
        "`Authorization: Bearer op_live_…`. In a PATCH, `null` clears and what is absent stays; unknown fields are " +
        "refused by name. Every refusal has the same body; go by its `code`."
    })
  )

/** What a process without the operator API still answers: probes and metrics. */
export const ProbesApi = HttpApi.make("probes").add(OperationalApi).prefix("/admin-ui")
