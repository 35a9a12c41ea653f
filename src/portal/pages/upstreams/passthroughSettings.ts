import { call } from "../../api/control.ts"
import type { BodyOf, ResponseOf } from "../../api/Endpoints.ts"

export type Settings = ResponseOf<"GET", "/admin-ui/admin/providers/upstream-passthrough">
export type SettingsPatch = BodyOf<"PATCH", "/admin-ui/admin/providers/upstream-passthrough">
export const settingsPath = "/admin-ui/admin/providers/upstream-passthrough"

export const readSettings = () => call("GET", settingsPath, {})
export const saveSettings = (body: SettingsPatch) => call("PATCH", settingsPath, { body })
