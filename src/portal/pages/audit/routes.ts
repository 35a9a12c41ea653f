import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/audit",
  validateSearch: textSearch("action", "target_type", "target_id", "actor_token_id", "span", "do"),
  component: laterPage(() => import("./AuditPage.tsx"))
})

export const auditRoutes = [list] as const
