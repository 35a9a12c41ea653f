import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/guardrails",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./GuardrailsPage.tsx"))
})

export const guardrailsRoutes = [list] as const
