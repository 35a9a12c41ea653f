/**
 * The gateway as a Layer. `Gateway.layer` needs the doors of `svc-runtime/services` and the services exported here;
 * `svc-runtime/layers/ProxyListener` serves it over HTTP.
 */
export { Guardrails } from "../guardrails/Guardrails.ts"
export { StartupAuthSettings } from "../policy/AuthSettings.ts"
export { StartupUpstreams } from "../policy/routes/StartupUpstreams.ts"
export { Conditions } from "../process/Conditions.ts"
export { GatewaySettings } from "../process/GatewaySettings.ts"
export { Vault } from "../state/Vault.ts"
export * as Gateway from "./Gateway.ts"
export { GatewayError } from "./GatewayError.ts"
export { ProxyApp } from "./ProxyApp.ts"
