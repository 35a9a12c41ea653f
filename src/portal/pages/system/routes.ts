import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/system",
  validateSearch: textSearch(),
  component: laterPage(() => import("./SystemPage.tsx"))
})

export const systemRoutes = [list] as const
