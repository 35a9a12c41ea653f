import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/tasks",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./TasksPage.tsx"))
})

export const tasksRoutes = [list] as const
