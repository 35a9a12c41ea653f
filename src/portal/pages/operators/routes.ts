import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/operators",
  validateSearch: textSearch("tab", "do"),
  component: lazyRouteComponent(() => import("./OperatorsPage.tsx"))
})

export const operatorsRoutes = [list] as const
