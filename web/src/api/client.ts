// Clients of the coordinator's services, over gRPC-Web on the server that served this page.
import { type Client, type Interceptor, createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { AdminService, StoreService } from "@gen/admin_service_pb.js";
import { ArtifactService, JobService } from "@gen/job_service_pb.js";
import { currentToken } from "./token.js";

const authorize: Interceptor = (next) => (request) => {
  const token = currentToken();
  if (token) request.header.set("authorization", `Bearer ${token}`);
  return next(request);
};

const transport = createGrpcWebTransport({ baseUrl: window.location.origin, interceptors: [authorize] });

export const jobs: Client<typeof JobService> = createClient(JobService, transport);
export const artifacts: Client<typeof ArtifactService> = createClient(ArtifactService, transport);
export const admin: Client<typeof AdminService> = createClient(AdminService, transport);
export const store: Client<typeof StoreService> = createClient(StoreService, transport);
