import { HttpApi, type HttpApiGroup, type HttpApiMiddleware, OpenApi } from "effect/http-api"
import { AuditApi } from "./AuditApi.ts"
import { AuthSettingsApi } from "./AuthSettingsApi.ts"
import { ConfigurationApi } from "./ConfigurationApi.ts"
import { FindApi } from "./FindApi.ts"
import { HolderApi } from "./holder/HolderApi.ts"
import { BulkKeyChangesApi } from "./keys/BulkKeyChangesApi.ts"
import { CredentialMappingsApi } from "./keys/CredentialMappingsApi.ts"
import { KeysApi } from "./keys/KeysApi.ts"
import { ProjectsApi } from "./keys/ProjectsApi.ts"
import { LiveApi } from "./LiveApi.ts"
import { LimitsApi } from "./limits/LimitsApi.ts"
import { OperationalApi, ProbesApi } from "./OperationalApi.ts"
import { OperatorSessionsApi, OperatorTokenApi, OperatorTokensApi } from "./OperatorTokenApi.ts"
import { GuardrailsApi } from "./policies/GuardrailsApi.ts"
import { KeyGuardrailsApi } from "./policies/KeyGuardrailsApi.ts"
import { PolicyApi } from "./policies/PolicyApi.ts"
import { PolicyLayersApi } from "./policies/PolicyLayersApi.ts"
import { ModelPricesApi } from "./providers/ModelPricesApi.ts"
import { ProviderHealthApi } from "./providers/ProviderHealthApi.ts"
import { ProvidersApi } from "./providers/ProvidersApi.ts"
import { FamilyARoutesApi, FamilyBRoutesApi, RoutesApi } from "./providers/RoutesApi.ts"
import { UpstreamPassthroughApi } from "./providers/UpstreamPassthroughApi.ts"
import { UpstreamUiApi } from "./providers/UpstreamUiApi.ts"
import { HolderSessionApi, SessionApi } from "./SessionApi.ts"
import { SystemApi } from "./SystemApi.ts"
import { Authorization, KeyAuthorization, RequestDecoding } from "./schema/Security.ts"
import { ServiceImportApi } from "./services/ServiceImportApi.ts"
import { ServiceOpenApiApi } from "./services/ServiceOpenApiApi.ts"
import { ServicesApi } from "./services/ServicesApi.ts"
import { StudioApi } from "./services/StudioApi.ts"
import { DebugBundlesApi } from "./usage/DebugBundlesApi.ts"
import { SeenModelsApi } from "./usage/SeenModelsApi.ts"
import { UsageApi } from "./usage/UsageApi.ts"

type OperatorGroups =
  | typeof OperatorTokenApi
  | typeof OperatorTokensApi
  | typeof OperatorSessionsApi
  | typeof ProjectsApi
  | typeof KeysApi
  | typeof BulkKeyChangesApi
  | typeof PolicyLayersApi
  | typeof PolicyApi
  | typeof LimitsApi
  | typeof RoutesApi
  | typeof FamilyARoutesApi
  | typeof FamilyBRoutesApi
  | typeof ProvidersApi
  | typeof CredentialMappingsApi
  | typeof UpstreamPassthroughApi
  | typeof UpstreamUiApi
  | typeof ModelPricesApi
  | typeof ServiceImportApi
  | typeof ServiceOpenApiApi
  | typeof StudioApi
  | typeof ServicesApi
  | typeof ProviderHealthApi
  | typeof AuthSettingsApi
  | typeof GuardrailsApi
  | typeof UsageApi
  | typeof SeenModelsApi
  | typeof AuditApi
  | typeof DebugBundlesApi
  | typeof ConfigurationApi
  | typeof SystemApi

/** `Path` is the prefix of the groups, and `Caller` is the middleware that authenticates their callers. */
type Authenticated<Groups, Caller extends HttpApiMiddleware.AnyId, Path extends `/${string}`> = HttpApiGroup.AddPrefix<
  HttpApiGroup.AddMiddleware<HttpApiGroup.AddMiddleware<Groups, RequestDecoding>, Caller>,
  Path
>

/** The type of the API. Without this name, every declaration that mentions the API would repeat all of its schemas. */
type Groups = HttpApiGroup.AddPrefix<
  | typeof OperationalApi
  | typeof SessionApi
  | Authenticated<OperatorGroups, Authorization, "/admin">
  | HttpApiGroup.AddMiddleware<
      HttpApiGroup.AddMiddleware<typeof FindApi | typeof LiveApi, RequestDecoding>,
      Authorization
    >
  | Authenticated<typeof KeyGuardrailsApi | typeof HolderApi, KeyAuthorization, "/v1">,
  "/admin-ui"
>

type PortalGroups = HttpApiGroup.AddPrefix<
  | typeof ProbesApi
  | typeof HolderSessionApi
  | Authenticated<typeof KeyGuardrailsApi | typeof HolderApi, KeyAuthorization, "/v1">,
  "/admin-ui"
>

/** The endpoints that require an operator token. The middleware below checks the token for every group in this list. */
const OperatorApi = HttpApi.make("operator")
  .add(
    OperatorTokenApi,
    OperatorTokensApi,
    OperatorSessionsApi,
    ProjectsApi,
    KeysApi,
    BulkKeyChangesApi,
    PolicyLayersApi,
    PolicyApi,
    LimitsApi,
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
    AuthSettingsApi,
    GuardrailsApi,
    UsageApi,
    SeenModelsApi,
    AuditApi,
    DebugBundlesApi,
    ConfigurationApi,
    SystemApi
  )
  // The middleware added last runs first. The caller is therefore authenticated before the request is decoded.
  .middleware(RequestDecoding)
  .middleware(Authorization)
  // Requests with unknown fields or parameters are refused. Responses keep the default options.
  .annotate(HttpApi.PayloadParseOptions, { onExcessProperty: "error", errors: "all" })
  .annotate(HttpApi.QueryParseOptions, { onExcessProperty: "error", errors: "all" })
  .prefix("/admin")

/** The endpoints for operators that are not about one kind of stored objects. */
const AcrossApi = HttpApi.make("across")
  .add(FindApi, LiveApi)
  .middleware(RequestDecoding)
  .middleware(Authorization)
  .annotate(HttpApi.QueryParseOptions, { onExcessProperty: "error", errors: "all" })

/** The endpoints that require a gateway key. They change nothing but the secret of this key, where operators allow it. */
const KeyApi = HttpApi.make("key")
  .add(KeyGuardrailsApi, HolderApi)
  .middleware(RequestDecoding)
  .middleware(KeyAuthorization)
  .annotate(HttpApi.PayloadParseOptions, { onExcessProperty: "error", errors: "all" })
  .annotate(HttpApi.QueryParseOptions, { onExcessProperty: "error", errors: "all" })
  .prefix("/v1")

const HolderOnly = HttpApi.make("holder")
  .add(KeyGuardrailsApi, HolderApi)
  .middleware(RequestDecoding)
  .middleware(KeyAuthorization)
  .annotate(HttpApi.PayloadParseOptions, { onExcessProperty: "error", errors: "all" })
  .annotate(HttpApi.QueryParseOptions, { onExcessProperty: "error", errors: "all" })
  .prefix("/v1")

/**
 * The API of the listener for holders of keys. Its groups have the handlers of `ControlApi`, so it has the same name.
 */
export const PortalApi: HttpApi.HttpApi<"control", PortalGroups> = HttpApi.make("control")
  .add(ProbesApi, HolderSessionApi)
  .addHttpApi(HolderOnly)
  .prefix("/admin-ui")

/** Defines the operator API for the server, the OpenAPI document and typed clients (also in browsers). */
export const ControlApi: HttpApi.HttpApi<"control", Groups> = HttpApi.make("control")
  .add(OperationalApi, SessionApi)
  .addHttpApi(OperatorApi)
  .addHttpApi(AcrossApi)
  .addHttpApi(KeyApi)
  .prefix("/admin-ui")
  .annotateMerge(
    OpenApi.annotations({
      title: "svc-runtime control API",
      version: "0.1.0",
      description:
        "Operators configure here who may use the gateway, for what and with which credentials. Authenticate with " +
        "`Authorization: Bearer op_live_…`, browsers with the cookie of `POST /admin-ui/session`. In a PATCH, `null` clears a field and an absent field stays unchanged. " +
        "Unknown fields are refused by name. All errors have the same body. Distinguish them by `code`."
    })
  )
