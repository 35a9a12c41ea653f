import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/services",
  validateSearch: textSearch("q", "state", "do"),
  component: laterPage(() => import("./ServicesPage.tsx"))
})

const one = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/services/$name",
  validateSearch: textSearch("tab", "do"),
  component: laterPage(() => import("./ServicePage.tsx"))
})

export const servicesRoutes = [list, one] as const
