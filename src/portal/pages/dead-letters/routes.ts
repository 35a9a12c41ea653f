import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/dead-letters",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./DeadLettersPage.tsx"))
})

export const deadLettersRoutes = [list] as const
