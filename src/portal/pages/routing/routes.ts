import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/routes",
  validateSearch: textSearch("do"),
  component: laterPage(() => import("./RoutesPage.tsx"))
})

export const routingRoutes = [list] as const
