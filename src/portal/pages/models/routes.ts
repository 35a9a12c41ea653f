import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/models",
  validateSearch: textSearch("tab", "do", "model", "priced", "sort_by", "sort_order", "q"),
  component: laterPage(() => import("./ModelsPage.tsx"))
})

export const modelsRoutes = [list] as const
