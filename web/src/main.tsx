import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router/dom";
import { isFinal } from "./api/errors.js";
import { router } from "./app/routes.js";
import "./app/theme.css";

const queries = new QueryClient({
  defaultOptions: { queries: { retry: (count, error) => count < 3 && !isFinal(error), refetchOnWindowFocus: false } },
});

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
