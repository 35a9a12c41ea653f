import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/audit",
  validateSearch: textSearch("action", "target_type", "target_id", "actor_token_id", "span", "do"),
  component: lazyRouteComponent(() => import("./AuditPage.tsx"))
})

export const auditRoutes = [list] as const
